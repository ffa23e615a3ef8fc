// What a plan's collective takes, derived from the plan itself: any plan has a cost.
//
// The cost is the walk over the plan's steps, done once. It counts what each link and each server
// has to do in each step, frames that others relay included; CostParameters say what that takes.
//
//   latency    the messages that wait for each other. In a step a message takes the latency of its
//              hops, and in a ring as often as it has rounds. One that is relayed takes three times
//              as long: its sender asks for credit first, and nothing goes to a server that is no
//              neighbour without (protocol/credit.h). Beside this, each server handles its messages
//              one after the other: what the busiest one sends, receives and relays.
//   transfer   the bytes. In lock step each step takes as long as its busiest link, as
//              BlueConnect's Eq. 9 and 10 and HiPS's stages have it. A buffer of many segments
//              flows through all steps at once: then what the busiest link carries in all of them
//              is what counts, as in BML, section 3.2. But a ring has its first sum in its last
//              round: the steps behind it begin no earlier, and links of other levels are idle
//              until then if no other thread has work for them. Between lock step and flow it
//              depends on the number of segments of a piece.
//
// A link is one direction of one server's port. Shares are of the buffer. A broadcast and a reduce
// are taken for an all-reduce, which has the same streams; a reduce-scatter and an all-gather are
// half of one, unless a step has the pattern root (collective_layout.h). A barrier has no bytes.
//
// What it does not know: losses, additions, other jobs, and cores that servers share, but for what
// the parameters say of a message. Immutable after construction. The functions throw nothing.
#ifndef GRADCUBE_CONTROL_PLAN_PLAN_COST_H_
#define GRADCUBE_CONTROL_PLAN_PLAN_COST_H_

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "control/plan/collective_kind.h"
#include "control/plan/plan.h"

namespace gradcube::control {

// Of the links of one level.
struct LinkCost {
  double latency = 0;           // seconds from one server to its neighbour, of the first byte
  double seconds_per_byte = 0;  // 8 / bits per second
};

struct CostParameters {
  std::vector<LinkCost> levels;  // of the topology
  double overhead = 0;           // seconds that a server takes for a message, in or out
  double frame_bytes = 0;        // that a message takes of a link beside its own
  // What flows through the steps by itself; infinite: steps follow each other.
  double segment_bytes = std::numeric_limits<double>::infinity();
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

  // Of a collective on a buffer of so many bytes. The parameters have all levels of the topology.
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
  // A step of a thread: rounds, the ways that messages take, and what a link of the level has to
  // carry, at least.
  struct Chain {
    unsigned rounds = 1;
    Load load{};
    std::vector<Way> ways{};  // each once
  };

  class Walk;

  double chain_seconds(const CostParameters& parameters) const;
  double step_seconds(const Chain& chain, double bytes, const CostParameters& parameters) const;
  // Of a ring: the time of all its rounds but one.
  double beyond_one_round(const Chain& chain, double bytes,
                          const CostParameters& parameters) const {
    return step_seconds(chain, bytes, parameters) * (chain.rounds - 1) / chain.rounds;
  }
  double flow_seconds(double bytes, const CostParameters& parameters) const;

  std::uint32_t ranks_;
  bool has_root_step_;
  std::vector<std::vector<Chain>> chains_;  // [thread][step]
  std::vector<LevelLoads> steps_;           // of both stages, in their order
  LevelLoads all_;                          // of all steps together
  double server_messages_ = 0;              // that the busiest server handles, in and out
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PLAN_COST_H_
