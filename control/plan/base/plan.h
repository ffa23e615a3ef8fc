// A plan: who sends which part of the gradient to whom, at which step. Every algorithm is a
// function that returns one.
//
// A plan is over ranks 0..N-1 on a logical grid, and a Placement says which server has which rank.
// It is threads x steps. Each thread has a share of the buffer in proportion to its weight, and
// goes through its own steps: at aggregation step w a rank exchanges partial sums with its peers,
// the ranks that differ from it in the step's digit alone; the broadcast stage goes the same way
// back. In the words of MPI and NCCL, the aggregation stage is a reduce-scatter and the broadcast
// stage an all-gather.
//
// Nothing is stored but the steps. What one thread of one rank does with them is arithmetic on
// digits: thread_schedule.h has the streams, collective_layout.h the bytes of their segments. So a
// plan for 65536 servers takes as much memory as one for 4.
//
// Threads: immutable after construction; every engine may share one. The const functions allocate
// nothing but for exchanges(), and trust their arguments to be in range.
#ifndef GRADCUBE_CONTROL_PLAN_BASE_PLAN_H_
#define GRADCUBE_CONTROL_PLAN_BASE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bcube_forwarding/route.h"
#include "control/plan/base/byte_range.h"
#include "control/plan/base/pieces.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/stage.h"
#include "control/plan/base/step_pattern.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

using bcube::Hop;
using bcube::Route;

inline constexpr unsigned kMaxPlanThreads = 128;
inline constexpr unsigned kMaxWeight = 65535;

struct PlanThread {
  unsigned weight = 1;  // of all threads' weights, its share of the buffer
  std::vector<PlanStep> steps;
  unsigned rail = 0;  // of its messages, where several join two servers

  bool operator==(const PlanThread&) const = default;
};

// Whether transfers of one round of one step may share a port in one direction. A tree's uplinks
// are shared whatever the plan is.
enum class LinkUse { exclusive, shared };

// What a rank gives to one peer, and gets from the same or another, in one step of one thread.
struct Exchange {
  Rank peer = 0;  // that it gives to
  PieceSet send;
  PieceSet receive;
  Rank source = peer;  // that it gets from; in a ring another one
  unsigned round = 0;  // in a ring: those of a later round follow

  bool operator==(const Exchange&) const = default;
};

class Plan {
 public:
  // link_use: what the algorithm promises, and verify() proves.
  //
  // Throws std::invalid_argument when
  //   - the placement is of another topology;
  //   - there are no or more than kMaxPlanThreads threads, or a weight is not in 1..kMaxWeight;
  //   - a thread's steps do not number the ranks. There must be 1..kMaxSteps of them, with radices
  //     of 2 to kMaxRunnableRadix, and their digits must be those of a rank as a mixed-radix
  //     number, in any order;
  //   - some steps have the pattern doubling and others do not.
  Plan(std::string algorithm, Topology topology, Placement placement,
       std::vector<PlanThread> threads, LinkUse link_use = LinkUse::exclusive);

  const std::string& algorithm() const { return algorithm_; }
  LinkUse link_use() const { return link_use_; }

  // Where it runs. servers() counts those of the topology: ranks() of them take part.
  const Topology& topology() const { return topology_; }
  const AddressSpace& space() const { return topology_.space(); }
  std::uint32_t servers() const { return topology_.servers(); }
  const Placement& placement() const { return placement_; }
  std::uint32_t ranks() const { return placement_.ranks(); }

  unsigned threads() const { return static_cast<unsigned>(threads_.size()); }
  // Of a thread, and of all: one for each rank, unless steps of the pattern root or doubling leave
  // fewer.
  std::uint32_t pieces(unsigned thread) const;
  std::uint32_t pieces() const;
  const PlanThread& thread(unsigned thread) const { return threads_[thread]; }

  // Of one stage of a thread, and the most that any thread has.
  unsigned steps(unsigned thread) const {
    return static_cast<unsigned>(threads_[thread].steps.size());
  }
  unsigned steps() const { return most_steps_; }

  const PlanStep& step(unsigned thread, unsigned step) const {
    return threads_[thread].steps[step];
  }
  unsigned radix(unsigned thread, unsigned step) const { return this->step(thread, step).radix; }
  unsigned digit(Rank rank, unsigned thread, unsigned step) const {
    return this->step(thread, step).digit(rank);
  }

  // Whether any step has the pattern root.
  bool has_root_step() const { return has_root_step_; }
  // Whether all steps have the pattern doubling: it has no broadcast stage, and runs all-reduces
  // and barriers alone (plan_choice.h).
  bool doubles() const { return doubles_; }
  // Whether the rank still works on something after the first `steps` aggregation steps: it is the
  // root in all steps of that pattern. After all of them, whether it owns a piece.
  bool works(Rank rank, unsigned thread, unsigned steps) const;

  // The rank that differs from `rank` in having this digit in the step.
  Rank peer(Rank rank, unsigned thread, unsigned step, unsigned digit) const {
    return this->step(thread, step).with_digit(rank, digit);
  }

  // The level of links (dimension of the topology) that joins the peers of a step, one hop from
  // each other; of a tree the highest that they pass. Nothing when the step's digit spans several
  // levels.
  std::optional<unsigned> level(unsigned thread, unsigned step) const;

  // From one rank's server to the other's, of a thread: one hop for neighbours. Empty where it
  // would take more hops than a frame has room for: make_plan() makes no plan with such peers.
  Route route(Rank from, Rank to, unsigned thread = 0) const;

  // The aggregation step whose transfers a step of this stage makes: itself, or for the broadcast
  // stage steps(thread)-1-step.
  unsigned mirrored(unsigned thread, Stage stage, unsigned step) const {
    return stage == Stage::aggregation ? step : steps(thread) - 1 - step;
  }

  // The thread's share of any range of units, as part() takes it: the shares of all threads.
  PartRange thread_part(unsigned thread) const {
    return {first_weight_[thread], first_weight_[thread + 1], first_weight_.back()};
  }

  // The thread's share of a buffer of `bytes` bytes (any number).
  ByteRange thread_range(unsigned thread, std::uint64_t bytes) const {
    return bytes_of(part(units_of(bytes), thread_part(thread)), bytes);
  }

  // Everything that `rank` exchanges in thread `thread` at step `step` of the stage: in a mesh by
  // ascending digit of the peer (BML, Algorithm 1, lines 6-9 and 11-14), in a ring by round, and at
  // a root as in a mesh with sets that are empty one way. Nothing where it does not work on, or in
  // a stage that the plan does not have. This is the plan as people and JSON read it; verify()
  // proves that the streams carry the same pieces.
  std::vector<Exchange> exchanges(Rank rank, unsigned thread, Stage stage, unsigned step) const;

  // The set of pieces that `rank` still has to aggregate after aggregation step `step`: the paper's
  // CalcGset(server, step). None if it does not work on. Where steps double, the one piece of the
  // thread, which is named after rank 0.
  PieceSet piece_set(Rank rank, unsigned thread, unsigned step) const;

  // The one piece that this thread of `rank` aggregates completely, if it does.
  PieceSet owned(Rank rank, unsigned thread) const {
    return piece_set(rank, thread, steps(thread) - 1);
  }
  // Whether that piece is named after the rank: each piece after one.
  bool owns(Rank rank, unsigned thread) const {
    return owned(rank, thread).contains({thread, rank});
  }

 private:
  std::string algorithm_;
  Topology topology_;
  Placement placement_;
  std::vector<PlanThread> threads_;
  std::vector<std::uint32_t> first_weight_;  // [thread]: of the threads before; then of all
  unsigned most_steps_ = 0;
  bool has_root_step_ = false;
  bool doubles_ = false;
  LinkUse link_use_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_PLAN_H_
