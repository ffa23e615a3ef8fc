#include "control/plan/verify_sample.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "control/plan/streams.h"

namespace gradcube::control {
namespace {

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

enum class LinkSide : std::uint8_t { out, in };

// The links of one rank in one step: which thread uses them in a round, and what they carry.
class Links {
 public:
  Links(const Plan& plan, Rank rank, Stage stage, unsigned step)
      : plan_(plan), rank_(rank), stage_(stage), step_(step) {}

  // `from` sends these pieces in a round of the pattern; from or to is the rank.
  void use(unsigned thread, LinkSide direction, Rank from, Rank to, unsigned round,
           std::uint32_t pieces) {
    if (pieces == 0) return;
    const unsigned w = plan_.mirrored(thread, stage_, step_);
    const PlanStep& s = plan_.step(thread, w);
    const unsigned port =
        port_to(direction == LinkSide::out ? to : from, *plan_.level(thread, w), thread);
    carried_[{port, direction}] += pieces;
    if (plan_.link_use() == LinkUse::shared) return;
    // In the rounds of a mesh as in those of a ring, each rank sends to one peer.
    round += step_pattern::offset_of_digit(s.radix, s.digit(from), s.digit(to));
    const auto [entry, fresh] = threads_.emplace(std::tuple(round, port, direction), thread);
    if (fresh) return;
    throw PlanError(fmt::format("{} step {}, thread {}: {}'s port {} is already used by thread {}",
                                stage_name(stage_), step_, thread, name_of(plan_, rank_), port,
                                entry->second));
  }

  // By port.
  const std::map<std::pair<unsigned, LinkSide>, std::uint64_t>& carried() const { return carried_; }

 private:
  unsigned port_to(Rank neighbour, unsigned level, unsigned thread) const {
    const AddressSpace& space = plan_.space();
    const ServerId server = plan_.placement().server(rank_);
    const ServerId other = plan_.placement().server(neighbour);
    const unsigned rail = plan_.thread(thread).rail % space.rails(server, other);
    return space.port_of(server, level, space.hop_digit(other, level, rail));
  }

  const Plan& plan_;
  Rank rank_;
  Stage stage_;
  unsigned step_;
  std::map<std::tuple<unsigned, unsigned, LinkSide>, unsigned> threads_;
  std::map<std::pair<unsigned, LinkSide>, std::uint64_t> carried_;
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
void check_ends(const Plan& plan, const Streams& streams, Rank rank) {
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
      for (unsigned step = 0; step < plan.steps(thread); ++step) {
        for (const Transfer& t : streams.transfers(rank, thread, stage, step)) {
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

std::optional<std::vector<std::uint64_t>> verify_sample(const Plan& plan, const Sample& sample) {
  for (unsigned depth = 1; depth <= plan.steps(); ++depth) {
    const Streams streams(plan, depth);
    for (const Rank rank : sample.ranks) {
      streams.check_dependencies(rank);
      streams.check_exchanges(rank);
      check_ends(plan, streams, rank);
    }
  }
  const ExchangeFunction exchanges = [&plan](Rank rank, unsigned thread, Stage stage,
                                             unsigned step) {
    return plan.exchanges(rank, thread, stage, step);
  };
  for (const PieceId piece : sample.pieces) follow_piece(plan, piece, exchanges);
  if (!all_are_neighbours(plan)) return std::nullopt;
  std::vector<std::uint64_t> most(plan.space().levels(), 0);
  for (const Rank rank : sample.ranks) {
    const std::vector<std::uint64_t> carried = check_links(plan, rank, exchanges);
    for (unsigned level = 0; level < carried.size(); ++level) {
      most[level] = std::max(most[level], carried[level]);
    }
  }
  return most;
}

void follow_piece(const Plan& plan, PieceId piece, const ExchangeFunction& exchanges) {
  Trace(plan, piece, exchanges).run();
}

std::vector<std::uint64_t> check_links(const Plan& plan, Rank rank,
                                       const ExchangeFunction& exchanges) {
  std::map<std::pair<unsigned, LinkSide>, std::uint64_t> carried;
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    for (unsigned step = 0; step < plan.steps(); ++step) {
      Links links(plan, rank, stage, step);
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        if (step >= plan.steps(thread)) continue;
        for (const Exchange& e : exchanges(rank, thread, stage, step)) {
          links.use(thread, LinkSide::out, rank, e.peer, e.round, e.send.count());
          links.use(thread, LinkSide::in, e.source, rank, e.round, e.receive.count());
        }
      }
      for (const auto& [link, pieces] : links.carried()) carried[link] += pieces;
    }
  }
  std::vector<std::uint64_t> most(plan.space().levels(), 0);
  for (const auto& [link, pieces] : carried) {
    std::uint64_t& of_level = most[plan.space().level_of_port(link.first)];
    of_level = std::max(of_level, pieces);
  }
  return most;
}

}  // namespace gradcube::control
