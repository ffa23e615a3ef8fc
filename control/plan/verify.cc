#include "control/plan/verify.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "control/plan/base/topology_links.h"

namespace gradcube::control {
namespace {

constexpr Stage kBothStages[] = {Stage::aggregation, Stage::broadcast};

std::string name_of(const Plan& plan, Rank rank) {
  return rank < plan.ranks() ? plan.space().text(plan.placement().server(rank))
                             : fmt::format("rank {}", rank);
}

// Where a piece comes from and goes to. Where steps double there is one, which each rank adds up by
// itself: then where its sum at the rank `owner` comes from.
class Trace {
 public:
  Trace(const Plan& plan, PieceId piece, const ExchangeFunction& exchanges)
      : plan_(plan),
        owner_(piece.owner),
        piece_(plan.doubles() ? PieceId{piece.thread, 0} : piece),
        exchanges_(exchanges),
        times_(plan.ranks(), 0) {}

  void run() {
    collect(owner_, plan_.steps(piece_.thread), 0);
    require_all("the aggregation stage brings its owner the contribution of");
    if (plan_.doubles()) return;
    std::fill(times_.begin(), times_.end(), std::uint8_t{0});
    spread(owner_, 0, 0);
    require_all("the broadcast stage brings the result to");
  }

 private:
  // What the rank has of the piece just before a round of an aggregation step: its own
  // contribution, and what earlier rounds and steps have brought.
  void collect(Rank rank, unsigned step, unsigned round) {
    count(rank, "the aggregation stage brings its owner the contribution of");
    for (unsigned w = 0; w < step || (w == step && round > 0); ++w) {
      for (const Exchange& e : exchanges_(rank, piece_.thread, Stage::aggregation, w)) {
        if (w == step && e.round >= round) continue;
        if (e.receive.contains(piece_)) collect(e.source, w, e.round);
      }
    }
  }

  // What the rank, which has the result, does with it from a round of a broadcast step on.
  void spread(Rank rank, unsigned step, unsigned round) {
    count(rank, "the broadcast stage brings the result to");
    for (unsigned w = step; w < plan_.steps(piece_.thread); ++w) {
      for (const Exchange& e : exchanges_(rank, piece_.thread, Stage::broadcast, w)) {
        if (w == step && e.round < round) continue;
        if (e.send.contains(piece_)) spread(e.peer, w, e.round + 1);
      }
    }
  }

  void count(Rank rank, std::string_view what) {
    if (rank >= plan_.ranks() || ++times_[rank] > 1) fail(rank, what, "more than once");
  }

  void require_all(std::string_view what) const {
    const auto missing = std::find(times_.begin(), times_.end(), 0);
    if (missing == times_.end()) return;
    fail(static_cast<Rank>(missing - times_.begin()), what, "never");
  }

  [[noreturn]] void fail(Rank rank, std::string_view what, std::string_view times) const {
    throw PlanError(fmt::format("piece {}: {} {} {}",
                                plan_.owned(piece_.owner, piece_.thread).text(), what,
                                name_of(plan_, rank), times));
  }

  const Plan& plan_;
  Rank owner_;
  PieceId piece_;
  const ExchangeFunction& exchanges_;
  std::vector<std::uint8_t> times_;  // [rank]
};

// So that what a rank's ports carry is all there is to count.
bool all_are_neighbours(const Plan& plan) {
  if (plan.topology().is_tree()) return false;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      const auto level = plan.level(thread, w);
      if (!level) return false;
      // On cables only those beside each other are.
      const PlanStep& step = plan.step(thread, w);
      const bool is_ring = step.is_ring() && step.radix == plan.space().radix(*level);
      if (plan.space().cabled() && !is_ring) return false;
    }
  }
  return true;
}

// That both ends of each of the rank's streams name the same pieces, in the same order.
void check_ends(const Plan& plan, const Streams& streams, Rank rank,
                const TransferFunction& transfers) {
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (const Stage stage : kBothStages) {
      for (unsigned step = 0; step < plan.steps(thread); ++step) {
        for (const Transfer& t : transfers(streams, rank, thread, stage, step)) {
          if (t.send == streams.received(t.peer, thread, stage, step, rank, t.round) &&
              t.receive == streams.sent(t.source, thread, stage, step, rank, t.round)) {
            continue;
          }
          throw PlanError(fmt::format(
              "{} step {}, thread {}: {} does not agree with {} and {} on what passes between them",
              stage_name(stage), step, thread, name_of(plan, rank), name_of(plan, t.peer),
              name_of(plan, t.source)));
        }
      }
    }
  }
}

// What links carry, and in a step which thread uses one in a round.
class LinkCount {
 public:
  explicit LinkCount(const Plan& plan) : plan_(plan), links_(plan.topology()) {}

  void begin_step() { threads_.clear(); }

  // On the way of these pieces, those links of which counts(link) is true.
  template <typename Counts>
  void add(unsigned thread, Stage stage, unsigned step, unsigned round, Rank from, Rank to,
           std::uint32_t pieces, Counts&& counts) {
    if (pieces == 0) return;
    const PlanStep& s = plan_.step(thread, plan_.mirrored(thread, stage, step));
    // In the rounds of a mesh as in those of a ring, each rank sends to one peer.
    round += step_pattern::offset_of_digit(s.radix, s.digit(from), s.digit(to));
    links_.for_each(plan_.placement().server(from), plan_.route(from, to, thread), [&](auto link) {
      if (!counts(link)) return;
      carried_[link] += pieces;
      if (plan_.link_use() == LinkUse::shared || links_.is_uplink(link)) return;
      const auto [entry, fresh] = threads_.emplace(std::pair(round, link), thread);
      if (fresh) return;
      throw PlanError(fmt::format("{} step {}, thread {}: {} is already used by thread {}",
                                  stage_name(stage), step, thread, links_.text(link),
                                  entry->second));
    });
  }

  bool is_port_of(TopologyLinks::Number link, Rank rank) const {
    return links_.is_port_of(link, plan_.placement().server(rank));
  }

  std::vector<std::uint64_t> most_of_levels() const {
    std::vector<std::uint64_t> most(plan_.topology().link_levels(), 0);
    for (const auto& [link, pieces] : carried_) {
      std::uint64_t& of_level = most[links_.level(link)];
      of_level = std::max(of_level, pieces);
    }
    return most;
  }

 private:
  const Plan& plan_;
  TopologyLinks links_;
  std::map<std::pair<unsigned, TopologyLinks::Number>, unsigned> threads_;  // by round
  std::map<TopologyLinks::Number, std::uint64_t> carried_;
};

bool are_all(const Plan& plan, const std::vector<Rank>& ranks) {
  return std::set<Rank>(ranks.begin(), ranks.end()).size() == plan.ranks();
}

Sample whole_of(const Plan& plan) {
  Sample whole;
  whole.ranks.resize(plan.ranks());
  std::iota(whole.ranks.begin(), whole.ranks.end(), Rank{0});
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (const Rank owner : whole.ranks) {
      // Where steps double each rank adds up the one piece by itself.
      if (plan.doubles() || plan.owns(owner, thread)) whole.pieces.push_back({thread, owner});
    }
  }
  return whole;
}

// A piece has to leave, and the result to come to, each rank but its owner: if it has the fewest
// transfers that do this, nothing is sent in vain, nor before it is complete.
void require_fewest_transfers(const Plan& plan, std::uint64_t transfers) {
  const std::uint64_t fewest = std::uint64_t{2} * plan.pieces() * (plan.ranks() - 1);
  if (plan.doubles() || transfers == fewest) return;
  throw PlanError(
      fmt::format("{} transfers of pieces, where {} bring each contribution to its "
                  "owner and each result to all",
                  transfers, fewest));
}

}  // namespace

Sample draw_sample(const Plan& plan, std::uint64_t seed, unsigned count) {
  std::mt19937_64 random(seed);
  Sample sample;
  for (unsigned i = 0; i < count; ++i) {
    sample.ranks.push_back(static_cast<Rank>(random() % plan.ranks()));
    PieceId piece{static_cast<unsigned>(random() % plan.threads()),
                  static_cast<Rank>(random() % plan.ranks())};
    // Behind a step of the pattern root only its root owns pieces.
    for (const PlanStep& step : plan.thread(piece.thread).steps) {
      if (step.is_root()) piece.owner = step.with_digit(piece.owner, 0);
    }
    sample.pieces.push_back(piece);
  }
  return sample;
}

void follow_piece(const Plan& plan, PieceId piece, const ExchangeFunction& exchanges) {
  Trace(plan, piece, exchanges).run();
}

VerifyReport count_links(const Plan& plan, const std::vector<Rank>& ranks,
                         const ExchangeFunction& exchanges) {
  const bool whole = are_all(plan, ranks);
  VerifyReport report{plan.ranks(), plan.pieces(), 0, {}};
  LinkCount count(plan);
  const auto add_step = [&](unsigned thread, Stage stage, unsigned step) {
    for (const Rank rank : std::set<Rank>(ranks.begin(), ranks.end())) {
      const auto counts = [&](auto link) { return whole || count.is_port_of(link, rank); };
      for (const Exchange& e : exchanges(rank, thread, stage, step)) {
        report.transfers += e.send.count();
        count.add(thread, stage, step, e.round, rank, e.peer, e.send.count(), counts);
        if (whole) continue;  // what it receives counts where it is sent
        count.add(thread, stage, step, e.round, e.source, rank, e.receive.count(), counts);
      }
    }
  };
  for (const Stage stage : kBothStages) {
    for (unsigned step = 0; step < plan.steps(); ++step) {
      count.begin_step();
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        if (step < plan.steps(thread)) add_step(thread, stage, step);
      }
    }
  }
  report.link_pieces = count.most_of_levels();
  return report;
}

namespace {

VerifyReport verify(const Plan& plan, const Sample& sample, const TransferFunction& transfers,
                    const ExchangeFunction& exchanges) {
  for (unsigned depth = 1; depth <= plan.steps(); ++depth) {
    const Streams streams(plan, depth);
    for (const Rank rank : sample.ranks) {
      streams.check_dependencies(rank);
      streams.check_exchanges(rank);
      check_ends(plan, streams, rank, transfers);
    }
  }
  for (const PieceId piece : sample.pieces) follow_piece(plan, piece, exchanges);
  if (!are_all(plan, sample.ranks) && !all_are_neighbours(plan)) {
    return {plan.ranks(), plan.pieces(), 0, {}};
  }
  return count_links(plan, sample.ranks, exchanges);
}

}  // namespace

ExchangeFunction exchanges_of(const Plan& plan) {
  return [&plan](Rank rank, unsigned thread, Stage stage, unsigned step) {
    return plan.exchanges(rank, thread, stage, step);
  };
}

VerifyReport verify(const Plan& plan, const Sample& sample) {
  return verify(plan, sample, &Streams::transfers, exchanges_of(plan));
}

VerifyReport verify(const Plan& plan) {
  return verify(plan, &Streams::transfers, exchanges_of(plan));
}

VerifyReport verify(const Plan& plan, const TransferFunction& transfers,
                    const ExchangeFunction& exchanges) {
  for (unsigned depth = 1; depth <= plan.steps(); ++depth) Streams(plan, depth).check_first_step();
  const VerifyReport report = verify(plan, whole_of(plan), transfers, exchanges);
  require_fewest_transfers(plan, report.transfers);
  return report;
}

}  // namespace gradcube::control
