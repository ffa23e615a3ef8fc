// What a plan's collective takes, derived from the plan itself: any plan has a cost.
//
// The cost is the walk over the plan's steps, done once. It counts what each link and each server
// has to do in each step, frames that others relay included; CostParameters say what that takes.
//
//   latency    the messages that wait for each other. In a step a message takes the latency of its
//              hops, each beyond the first half of it, and in a ring as often as it has rounds. One
//              that is relayed takes three times as long: its sender asks for credit first, and
//              nothing goes to a server that is no neighbour without (protocol/credit.h); and where
//              links have rates, so does what is longer than may go unasked, in a ring in all
//              rounds together. Beside this, each server handles its messages one after the other,
//              and those of all servers that share a core wait for each other: what the busiest
//              server, or all that share its core, send, receive and relay, with requests for
//              credit and their answers.
//   transfer   the bytes. In lock step each step takes as long as its busiest link, as
//              BlueConnect's Eq. 9 and 10 and HiPS's stages have it. A buffer of many segments
//              flows through all steps at once: then what the busiest link carries in all of them
//              is what counts, as in BML, section 3.2. But a ring has its first sum in its last
//              round: the steps behind it begin no earlier, and links of other levels are idle
//              until then if no other thread has work for them. Between lock step and flow it
//              depends on the number of segments of a piece.
//
// A link is one direction of one server's port, or of an uplink of a tree. What a port carries that
// has a rate of its own counts as what takes as long on the other links of its level. A message
// that passes uplinks takes the latency of the highest. Shares are of the buffer. A broadcast and a
// reduce are taken for an all-reduce, which has the same streams; a reduce-scatter and an
// all-gather are half of one, unless a step has the pattern root (collective_layout.h). A barrier
// has no bytes. A plan whose steps double has the aggregation stage alone, and the cost of no
// other kind.
//
// What it does not know: losses, additions and other jobs. Immutable after construction. The
// functions throw nothing.
#ifndef GRADCUBE_CONTROL_PLAN_PLAN_COST_H_
#define GRADCUBE_CONTROL_PLAN_PLAN_COST_H_

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "control/plan/base/plan.h"
#include "control/plan/collective_kind.h"

namespace gradcube::control {

// Of the links of one level.
struct LinkCost {
  double latency = 0;           // seconds from one server to a neighbour, of the first byte
  double seconds_per_byte = 0;  // 8 / bits per second
};

struct CostParameters {
  std::vector<LinkCost> levels;  // of the topology's links
  double overhead = 0;           // seconds that a core takes for a message at a server, in or out
  double servers_per_core = 1;   // whose messages a core handles, one after the other
  double frame_bytes = 0;        // that a message takes of a link beside its own
  // What flows through the steps by itself; infinite: steps follow each other.
  double segment_bytes = std::numeric_limits<double>::infinity();
  // What goes to a neighbour without a request for credit; infinite: no link has a rate.
  double unasked_bytes = std::numeric_limits<double>::infinity();
};

struct PlanTime {
  double latency = 0;    // seconds
  double transfer = 0;   // seconds
  unsigned busiest = 0;  // the level whose links take the longest

  double seconds() const { return latency + transfer; }
  // Whether the messages take longer than the bytes.
  bool latency_binds() const { return latency >= transfer; }
};

class PlanCost {
 public:
  explicit PlanCost(const Plan& plan);

  // What an all-reduce of nothing has: the latency of its messages, and how many of them a core
  // handles.
  double latency_of_nothing(const CostParameters& parameters) const {
    return stages_ * chain_seconds(0, parameters);
  }
  double messages_on_a_core(double servers_per_core) const;

  // What the busiest link of the level carries in an all-reduce, of the buffer.
  double share(unsigned level) const { return all_[level].share; }

  // Of a collective on a buffer of so many bytes. The parameters have all levels of links.
  PlanTime time(CollectiveKind kind, double bytes, const CostParameters& parameters) const;

 private:
  // What a link has to carry.
  struct Load {
    double share = 0;
    double messages = 0;

    void add(const Load& other) {
      share += other.share;
      messages += other.messages;
    }
    double seconds(double bytes, double frame_bytes, const LinkCost& link) const {
      return (share * bytes + messages * frame_bytes) * link.seconds_per_byte;
    }
  };
  using LevelLoads = std::vector<Load>;  // [level]: of the busiest link

  // Of a message: its hops by level.
  using Way = std::array<std::uint8_t, bcube::kMaxLevels>;
  // A step of a thread: rounds, the ways that messages take, and what a link of each level that is
  // on one of them has to carry, at least.
  struct Chain {
    double message = 0;  // its share of the buffer, in each round
    unsigned rounds = 1;
    LevelLoads loads{};
    std::vector<Way> ways{};  // each once

    // In how many of its rounds the message to a neighbour needs credit.
    double asking_rounds(double bytes, const CostParameters& parameters) const;
  };
  // What a server sends, receives and relays in both stages, by thread and step: messages to
  // neighbours, and to others, with all hops that they take here.
  struct Handled {
    double near = 0;
    double relayed = 0;

    void operator+=(const Handled& other) {
      near += other.near;
      relayed += other.relayed;
    }
    bool operator==(const Handled&) const = default;
    bool operator<(const Handled& other) const {
      return std::tie(near, relayed) < std::tie(other.near, other.relayed);
    }
  };
  using HandledSteps = std::vector<Handled>;  // [thread * steps + step]

  class Walk;

  double chain_seconds(double bytes, const CostParameters& parameters) const;
  double handled_messages(const HandledSteps& handled, double bytes,
                          const CostParameters& parameters) const;
  double core_messages(double bytes, const CostParameters& parameters) const;
  double step_seconds(const Chain& chain, double bytes, const CostParameters& parameters) const;
  // Of a ring: the time of all its rounds but one.
  double beyond_one_round(const Chain& chain, double bytes,
                          const CostParameters& parameters) const {
    return step_seconds(chain, bytes, parameters) * (chain.rounds - 1) / chain.rounds;
  }
  double flow_seconds(double bytes, const CostParameters& parameters) const;

  std::uint32_t ranks_;
  bool has_root_step_;
  unsigned stages_;                         // 1 where steps double, else 2
  bool one_port_;                           // all steps share the servers' links
  std::vector<std::vector<Chain>> chains_;  // [thread][step]
  std::vector<LevelLoads> steps_;           // of its stages, in their order
  LevelLoads all_;                          // of all steps together
  // Of the servers, each kind once, and of an average one.
  std::vector<HandledSteps> servers_;
  HandledSteps average_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PLAN_COST_H_
