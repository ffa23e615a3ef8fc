#include "control/plan/verify.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "control/plan/base/topology_links.h"

namespace gradcube::control {
namespace {

using Pieces = std::vector<PieceId>;

struct Message {
  Rank from;
  Rank to;
  PieceId piece;
  std::vector<std::uint8_t> contributions;  // as the sender had them when the step began
};

// How many pieces each link carries.
using LinkLoad = std::map<TopologyLinks::Number, std::uint64_t>;

// What the exchanges of the plan bring to each link.
LinkLoad shares_of_links(const Plan& plan, const TopologyLinks& links) {
  LinkLoad shares;
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
        for (unsigned step = 0; step < plan.steps(thread); ++step) {
          for (const Exchange& exchange : plan.exchanges(rank, thread, stage, step)) {
            links.for_each(plan.placement().server(rank), plan.route(rank, exchange.peer, thread),
                           [&](auto link) { shares[link] += exchange.send.count(); });
          }
        }
      }
    }
  }
  return shares;
}

class Interpreter {
 public:
  Interpreter(const Plan& plan, const TransferFunction& transfers)
      : plan_(plan),
        links_(plan.topology()),
        transfers_(transfers),
        state_(std::size_t{plan.ranks()} * plan.threads() * plan.ranks(),
               std::vector<std::uint8_t>(plan.ranks(), 0)) {
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      for_all_pieces([&](PieceId piece) { contributions(rank, piece)[rank] = 1; });
    }
  }

  VerifyReport run() {
    for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
      for (unsigned step = 0; step < plan_.steps(); ++step) run_step(stage, step);
      if (stage == Stage::aggregation) check_owners();
    }
    check_everywhere();
    return report();
  }

 private:
  // Which thread uses a link in a round.
  using Claims = std::map<std::pair<unsigned, TopologyLinks::Number>, unsigned>;

  std::vector<std::uint8_t>& contributions(Rank rank, PieceId piece) {
    return state_[(std::size_t{rank} * plan_.threads() + piece.thread) * plan_.ranks() +
                  piece.owner];
  }

  template <typename Visit>
  void for_all_pieces(Visit&& visit) {
    for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
      for (Rank owner = 0; owner < plan_.ranks(); ++owner) {
        if (plan_.owns(owner, thread)) visit(PieceId{thread, owner});
      }
    }
  }

  std::string name_of_server(ServerId server) const { return plan_.space().text(server); }

  std::string name(Rank rank) const {
    return rank < plan_.ranks() ? name_of_server(plan_.placement().server(rank))
                                : fmt::format("rank {}", rank);
  }

  std::string name(PieceId piece) const { return plan_.owned(piece.owner, piece.thread).text(); }

  [[noreturn]] static void fail(Stage stage, unsigned step, unsigned thread,
                                const std::string& what) {
    throw PlanError(
        fmt::format("{} step {}, thread {}: {}", stage_name(stage), step, thread, what));
  }

  // What all ranks say that they transfer in a step of a thread: [rank].
  using StepTransfers = std::vector<std::vector<Transfer>>;

  void run_step(Stage stage, unsigned step) {
    std::vector<StepTransfers> all(plan_.threads());
    unsigned rounds = 1;
    for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
      if (step >= plan_.steps(thread)) continue;
      rounds = std::max(rounds, plan_step(stage, step, thread).rounds());
      for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
        all[thread].push_back(transfers_(rank, thread, stage, step));
      }
    }
    Claims claims;
    for (unsigned round = 0; round < rounds; ++round) {
      std::vector<Message> messages;
      for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
        run_thread(stage, step, round, thread, all[thread], claims, messages);
      }
      for (const Message& message : messages) deliver(stage, step, message);
    }
  }

  void run_thread(Stage stage, unsigned step, unsigned round, unsigned thread,
                  const StepTransfers& transfers, Claims& claims, std::vector<Message>& messages) {
    // By (from, to): what the sender says that it sends, and what the receiver says that it
    // receives.
    std::map<std::pair<Rank, Rank>, std::pair<Pieces, Pieces>> agreed;
    std::set<std::pair<Rank, Rank>> senders;
    std::set<std::pair<Rank, Rank>> receivers;
    for (Rank rank = 0; rank < transfers.size(); ++rank) {
      for (const Transfer& transfer : transfers[rank]) {
        if (transfer.round != round) continue;
        check_peer(stage, step, thread, rank, transfer.peer);
        check_peer(stage, step, thread, rank, transfer.source);
        agreed[{rank, transfer.peer}].first = transfer.send;
        agreed[{transfer.source, rank}].second = transfer.receive;
        receivers.insert({transfer.source, rank});
        if (!senders.insert({rank, transfer.peer}).second) {
          fail(stage, step, thread, name(rank) + " names peer " + name(transfer.peer) + " twice");
        }
        claim_links(stage, step, thread, rank, transfer, claims);
      }
    }
    for (const auto& [ends_of, lists] : agreed) {
      const auto [from, to] = ends_of;
      if (!senders.contains(ends_of) || !receivers.contains(ends_of) ||
          lists.first != lists.second) {
        fail(stage, step, thread,
             fmt::format("{} and {} do not agree on what passes between them", name(from),
                         name(to)));
      }
      collect(from, to, lists.first, messages);
    }
  }

  template <typename Visit>
  void for_each_link(Rank from, Rank to, unsigned thread, Visit&& visit) const {
    links_.for_each(plan_.placement().server(from), plan_.route(from, to, thread), visit);
  }

  const PlanStep& plan_step(Stage stage, unsigned step, unsigned thread) const {
    return plan_.step(thread, plan_.mirrored(thread, stage, step));
  }

  void check_peer(Stage stage, unsigned step, unsigned thread, Rank rank, Rank peer) const {
    const PlanStep& s = plan_step(stage, step, thread);
    if (peer >= plan_.ranks() || peer == rank || s.with_digit(peer, s.digit(rank)) != rank) {
      fail(stage, step, thread,
           fmt::format("{} exchanges with {}, which is not its peer in this step", name(rank),
                       name(peer)));
    }
  }

  // In the rounds of a mesh as in those of a ring, each rank sends to one peer.
  void claim_links(Stage stage, unsigned step, unsigned thread, Rank from, const Transfer& transfer,
                   Claims& claims) const {
    if (plan_.link_use() == LinkUse::shared || transfer.send.empty()) return;
    const PlanStep& s = plan_step(stage, step, thread);
    const unsigned offset =
        step_pattern::offset_of_digit(s.radix, s.digit(from), s.digit(transfer.peer));
    const unsigned round = transfer.round + offset;
    for_each_link(from, transfer.peer, thread, [&](TopologyLinks::Number link) {
      if (links_.is_uplink(link)) return;
      const auto [entry, fresh] = claims.emplace(std::pair(round, link), thread);
      if (fresh) return;
      fail(stage, step, thread,
           fmt::format("{} is already used by thread {}", links_.text(link), entry->second));
    });
  }

  void collect(Rank from, Rank to, const Pieces& pieces, std::vector<Message>& messages) {
    for (const PieceId piece : pieces) {
      if (piece.thread >= plan_.threads() || piece.owner >= plan_.ranks()) {
        throw PlanError("a transfer names a piece that does not exist");
      }
      messages.push_back({from, to, piece, contributions(from, piece)});
    }
    for (const PieceId piece : pieces) {
      for_each_link(from, to, piece.thread, [&](auto link) { ++carried_[link]; });
    }
    pieces_sent_ += pieces.size();
  }

  void deliver(Stage stage, unsigned step, const Message& message) {
    std::vector<std::uint8_t>& here = contributions(message.to, message.piece);
    if (stage == Stage::broadcast) {
      if (!complete(message.contributions)) {
        fail(stage, step, message.piece.thread,
             fmt::format("{} broadcasts {} before it is complete", name(message.from),
                         name(message.piece)));
      }
      here = message.contributions;
      return;
    }
    for (std::size_t i = 0; i < here.size(); ++i) {
      here[i] = static_cast<std::uint8_t>(std::min(255, here[i] + message.contributions[i]));
    }
  }

  static bool complete(const std::vector<std::uint8_t>& counts) {
    return std::all_of(counts.begin(), counts.end(), [](std::uint8_t count) { return count == 1; });
  }

  void check_complete(Rank rank, PieceId piece, std::string_view when) {
    const std::vector<std::uint8_t>& counts = contributions(rank, piece);
    for (Rank from = 0; from < plan_.ranks(); ++from) {
      if (counts[from] == 1) continue;
      throw PlanError(
          fmt::format("after the {}, {} has the contribution of {} in piece {} {} times, not once",
                      when, name(rank), name(from), name(piece), counts[from]));
    }
  }

  void check_owners() {
    for_all_pieces([&](PieceId piece) { check_complete(piece.owner, piece, "aggregation stage"); });
  }

  void check_everywhere() {
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      for_all_pieces([&](PieceId piece) { check_complete(rank, piece, "broadcast stage"); });
    }
  }

  VerifyReport report() const {
    VerifyReport result{plan_.ranks(), plan_.pieces(), pieces_sent_,
                        std::vector<std::uint64_t>(plan_.topology().link_levels(), 0)};
    const LinkLoad shares = shares_of_links(plan_, links_);
    for (const auto& [link, pieces] : carried_) {
      const auto found = shares.find(link);
      const std::uint64_t share = found == shares.end() ? 0 : found->second;
      if (pieces > share) {
        throw PlanError(fmt::format("{} carries {} pieces, more than its share of {}",
                                    links_.text(link), pieces, share));
      }
      std::uint64_t& most = result.link_pieces[links_.level(link)];
      most = std::max(most, pieces);
    }
    return result;
  }

  const Plan& plan_;
  TopologyLinks links_;
  const TransferFunction& transfers_;
  std::vector<std::vector<std::uint8_t>> state_;  // [rank][piece][contributor]
  LinkLoad carried_;
  std::uint64_t pieces_sent_ = 0;
};

}  // namespace

VerifyReport verify(const Plan& plan) {
  VerifyReport report;
  for (unsigned depth = 1; depth <= plan.steps(); ++depth) {
    const Streams streams(plan, depth);
    streams.check_first_step();
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      streams.check_dependencies(rank);
      streams.check_exchanges(rank);
    }
    report = verify(plan, [&streams](Rank rank, unsigned thread, Stage stage, unsigned step) {
      return streams.transfers(rank, thread, stage, step);
    });
  }
  return report;
}

VerifyReport verify(const Plan& plan, const TransferFunction& transfers) {
  return Interpreter(plan, transfers).run();
}

}  // namespace gradcube::control
