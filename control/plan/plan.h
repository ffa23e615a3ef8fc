// A plan: who sends which part of the gradient to whom, at which step. Every algorithm is a
// function that returns one.
//
// A plan is threads x steps. Each thread has a share of the buffer and visits every level once, in
// its own order: at aggregation step w it exchanges partial sums with the neighbours at level(t,
// w); broadcast step w goes the same way back, over level(t, k-1-w). In the words of MPI and NCCL,
// the aggregation stage is a reduce-scatter and the broadcast stage an all-gather.
//
// Nothing is stored but these orders. What one thread of one server does with them is arithmetic on
// digits: thread_schedule.h has the order of the segments, collective_layout.h their bytes. So a
// plan for 65536 servers takes as much memory as one for 4.
//
// Threads: immutable after construction; every engine may share one. The const functions allocate
// nothing but for exchanges(), and trust their arguments to be in range.
#ifndef GRADCUBE_CONTROL_PLAN_PLAN_H_
#define GRADCUBE_CONTROL_PLAN_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/byte_range.h"
#include "control/plan/pieces.h"
#include "control/plan/topology.h"

namespace gradcube::control {

// A thread visits each level once.
inline constexpr unsigned kMaxSteps = kMaxLevels;

enum class Stage { aggregation, broadcast };
std::string_view stage_name(Stage stage);

// What a server gives to, and gets from, one neighbour in one step of one thread.
struct Exchange {
  ServerId peer = 0;
  PieceSet send;
  PieceSet receive;

  bool operator==(const Exchange&) const = default;
};

class Plan {
 public:
  // levels[t][w] is the level of thread t's aggregation step w. Throws std::invalid_argument when
  // there is no thread, or a thread does not visit every level of the topology exactly once.
  Plan(std::string algorithm, Topology topology, const std::vector<std::vector<unsigned>>& levels);

  const std::string& algorithm() const { return algorithm_; }
  const Topology& topology() const { return topology_; }
  const AddressSpace& space() const { return topology_.space(); }
  std::uint32_t servers() const { return topology_.servers(); }
  unsigned threads() const { return static_cast<unsigned>(levels_.size()); }
  unsigned steps() const { return topology_.levels(); }  // of one stage
  std::uint32_t pieces() const { return threads() * servers(); }

  unsigned level(unsigned thread, unsigned step) const { return levels_[thread][step]; }
  unsigned radix(unsigned thread, unsigned step) const {
    return space().radix(level(thread, step));
  }

  // The aggregation step whose transfers a step of this stage makes: itself, or for the broadcast
  // stage k-1-step.
  unsigned mirrored(Stage stage, unsigned step) const {
    return stage == Stage::aggregation ? step : steps() - 1 - step;
  }

  // The server that differs from `server` in having this digit at level(thread, step).
  ServerId peer(ServerId server, unsigned thread, unsigned step, unsigned digit) const {
    return space().with_digit(server, level(thread, step), digit);
  }

  // The thread's share of a buffer of `bytes` bytes (any number).
  ByteRange thread_range(unsigned thread, std::uint64_t bytes) const {
    return bytes_of(part(units_of(bytes), thread, threads()), bytes);
  }

  // Everything that `server` exchanges in thread `thread` at step `step` of the stage, by ascending
  // digit of the peer (BML, Algorithm 1, lines 6-9 and 11-14). This is the plan as people and JSON
  // read it; verify() proves that the streams carry the same pieces.
  std::vector<Exchange> exchanges(ServerId server, unsigned thread, Stage stage,
                                  unsigned step) const;

  // The set of pieces that `server` still has to aggregate after aggregation step `step`: the
  // paper's CalcGset(server, step).
  PieceSet piece_set(ServerId server, unsigned thread, unsigned step) const;

 private:
  std::string algorithm_;
  Topology topology_;
  std::vector<std::array<unsigned, kMaxSteps>> levels_;  // [thread][step]
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PLAN_H_
