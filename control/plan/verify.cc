#include "control/plan/verify.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace gradcube::control {
namespace {

using Pieces = std::vector<PieceId>;

struct Message {
  ServerId from;
  ServerId to;
  PieceId piece;
  std::vector<std::uint8_t> contributions;  // as the sender had them when the step began
};

class Interpreter {
 public:
  Interpreter(const Plan& plan, const TransferFunction& transfers)
      : plan_(plan),
        transfers_(transfers),
        state_(std::size_t{plan.servers()} * plan.pieces(),
               std::vector<std::uint8_t>(plan.servers(), 0)),
        sent_(std::size_t{plan.servers()} * plan.steps(), 0) {
    for (ServerId server = 0; server < plan.servers(); ++server) {
      for_all_pieces([&](PieceId piece) { contributions(server, piece)[server] = 1; });
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
  std::vector<std::uint8_t>& contributions(ServerId server, PieceId piece) {
    return state_[std::size_t{server} * plan_.pieces() +
                  std::size_t{piece.thread} * plan_.servers() + piece.owner];
  }

  template <typename Visit>
  void for_all_pieces(Visit&& visit) {
    for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
      for (ServerId owner = 0; owner < plan_.servers(); ++owner) visit(PieceId{thread, owner});
    }
  }

  std::string name(ServerId server) const { return plan_.space().text(server); }

  std::string name(PieceId piece) const {
    PieceSet set{.thread = piece.thread, .digits = {}};
    for (unsigned l = 0; l < plan_.steps(); ++l) {
      set.digits[l] = static_cast<int>(plan_.space().digit(piece.owner, l));
    }
    return set.text(plan_.space());
  }

  [[noreturn]] void fail(Stage stage, unsigned step, unsigned thread, const std::string& what) {
    throw PlanError(
        fmt::format("{} step {}, thread {}: {}", stage_name(stage), step, thread, what));
  }

  void run_step(Stage stage, unsigned step) {
    std::vector<Message> messages;
    std::map<std::pair<ServerId, unsigned>, unsigned> thread_of_link;
    for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
      const unsigned level = plan_.level(thread, plan_.mirrored(stage, step));
      // By (from, to): what the sender says that it sends, and what the receiver says that it
      // receives.
      std::map<std::pair<ServerId, ServerId>, std::pair<Pieces, Pieces>> agreed;
      std::map<std::pair<ServerId, ServerId>, unsigned> ends;
      for (ServerId server = 0; server < plan_.servers(); ++server) {
        for (const Transfer& transfer : transfers_(server, thread, stage, step)) {
          check_peer(stage, step, thread, level, server, transfer.peer);
          claim_link(stage, step, thread, level, server, thread_of_link);
          agreed[{server, transfer.peer}].first = transfer.send;
          agreed[{transfer.peer, server}].second = transfer.receive;
          if (++ends[{server, transfer.peer}] > 1) {
            fail(stage, step, thread,
                 name(server) + " names peer " + name(transfer.peer) + " twice");
          }
        }
      }
      for (const auto& [ends_of, lists] : agreed) {
        const auto [from, to] = ends_of;
        if (!ends.contains({from, to}) || !ends.contains({to, from}) ||
            lists.first != lists.second) {
          fail(stage, step, thread,
               fmt::format("{} and {} do not agree on what passes between them", name(from),
                           name(to)));
        }
        collect(from, to, level, lists.first, messages);
      }
    }
    for (const Message& message : messages) deliver(stage, step, message);
  }

  void check_peer(Stage stage, unsigned step, unsigned thread, unsigned level, ServerId server,
                  ServerId peer) {
    const AddressSpace& space = plan_.space();
    if (!space.contains(peer) || peer == server ||
        space.with_digit(peer, level, space.digit(server, level)) != server) {
      fail(stage, step, thread,
           fmt::format("{} exchanges with server {}, which is not its neighbour at level {}",
                       name(server), space.contains(peer) ? name(peer) : std::to_string(peer),
                       level));
    }
  }

  void claim_link(Stage stage, unsigned step, unsigned thread, unsigned level, ServerId server,
                  std::map<std::pair<ServerId, unsigned>, unsigned>& thread_of_link) {
    const auto [entry, fresh] = thread_of_link.emplace(std::pair(server, level), thread);
    if (!fresh && entry->second != thread) {
      fail(stage, step, thread,
           fmt::format("{}'s link of level {} is already used by thread {}", name(server), level,
                       entry->second));
    }
  }

  void collect(ServerId from, ServerId to, unsigned level, const Pieces& pieces,
               std::vector<Message>& messages) {
    for (const PieceId piece : pieces) {
      if (piece.thread >= plan_.threads() || !plan_.space().contains(piece.owner)) {
        throw PlanError("a transfer names a piece that does not exist");
      }
      messages.push_back({from, to, piece, contributions(from, piece)});
      ++sent_[std::size_t{from} * plan_.steps() + level];
      ++pieces_sent_;
    }
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

  void check_complete(ServerId server, PieceId piece, std::string_view when) {
    const std::vector<std::uint8_t>& counts = contributions(server, piece);
    for (ServerId from = 0; from < plan_.servers(); ++from) {
      if (counts[from] == 1) continue;
      throw PlanError(
          fmt::format("after the {}, {} has the contribution of {} in piece {} {} times, not once",
                      when, name(server), name(from), name(piece), counts[from]));
    }
  }

  void check_owners() {
    for_all_pieces([&](PieceId piece) { check_complete(piece.owner, piece, "aggregation stage"); });
  }

  void check_everywhere() {
    for (ServerId server = 0; server < plan_.servers(); ++server) {
      for_all_pieces([&](PieceId piece) { check_complete(server, piece, "broadcast stage"); });
    }
  }

  // What the mesh needs of a link of this level: at every step there, (radix-1) times the pieces
  // that remain.
  std::uint64_t share(unsigned level) const {
    std::uint64_t pieces = 0;
    for (unsigned t = 0; t < plan_.threads(); ++t) {
      std::uint64_t remaining = plan_.servers();
      for (unsigned w = 0; w < plan_.steps(); ++w) {
        remaining /= plan_.radix(t, w);
        if (plan_.level(t, w) == level) pieces += 2 * (plan_.radix(t, w) - 1) * remaining;
      }
    }
    return pieces;
  }

  VerifyReport report() const {
    VerifyReport result{plan_.servers(), plan_.pieces(), pieces_sent_, {}};
    for (unsigned level = 0; level < plan_.steps(); ++level) {
      std::uint64_t most = 0;
      for (ServerId server = 0; server < plan_.servers(); ++server) {
        const std::uint64_t pieces = sent_[std::size_t{server} * plan_.steps() + level];
        most = std::max(most, pieces);
        if (pieces > share(level)) {
          throw PlanError(
              fmt::format("{}'s link of level {} carries {} pieces, more than its share of {}",
                          name(server), level, pieces, share(level)));
        }
      }
      result.link_pieces.push_back(most);
    }
    return result;
  }

  const Plan& plan_;
  const TransferFunction& transfers_;
  std::vector<std::vector<std::uint8_t>> state_;  // [server][piece][contributor]
  std::vector<std::uint64_t> sent_;               // [server][level]
  std::uint64_t pieces_sent_ = 0;
};

// That the streams carry the pieces of the plan as people and JSON read it.
void compare_with_exchanges(const Plan& plan, const Streams& streams, ServerId server,
                            unsigned thread, Stage stage, unsigned step) {
  const auto same = [&plan](const PieceSet& set, Pieces pieces) {
    Pieces members;
    set.for_each(plan.space(), [&](PieceId piece) { members.push_back(piece); });
    std::sort(pieces.begin(), pieces.end());
    return members == pieces;
  };
  const std::vector<Exchange> exchanges = plan.exchanges(server, thread, stage, step);
  const std::vector<Transfer> transfers = streams.transfers(server, thread, stage, step);
  bool agree = exchanges.size() == transfers.size();
  for (const Transfer& transfer : transfers) {
    const auto exchange = std::find_if(exchanges.begin(), exchanges.end(),
                                       [&](const Exchange& e) { return e.peer == transfer.peer; });
    agree = agree && exchange != exchanges.end() && same(exchange->send, transfer.send) &&
            same(exchange->receive, transfer.receive);
  }
  if (!agree) {
    throw PlanError(fmt::format("{} step {}, thread {}: the streams of {} are not its exchanges",
                                stage_name(stage), step, thread, plan.space().text(server)));
  }
}

void compare_with_exchanges(const Plan& plan, const Streams& streams) {
  for (ServerId server = 0; server < plan.servers(); ++server) {
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      for (unsigned step = 0; step < plan.steps(); ++step) {
        compare_with_exchanges(plan, streams, server, thread, Stage::aggregation, step);
        compare_with_exchanges(plan, streams, server, thread, Stage::broadcast, step);
      }
    }
  }
}

}  // namespace

VerifyReport verify(const Plan& plan) {
  const Streams streams(plan);
  streams.check_dependencies();
  compare_with_exchanges(plan, streams);
  return verify(plan, [&streams](ServerId server, unsigned thread, Stage stage, unsigned step) {
    return streams.transfers(server, thread, stage, step);
  });
}

VerifyReport verify(const Plan& plan, const TransferFunction& transfers) {
  return Interpreter(plan, transfers).run();
}

}  // namespace gradcube::control
