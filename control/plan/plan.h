// A plan: who sends which part of the gradient to whom, at which step. Every algorithm is a
// function that returns one.
//
// A plan is threads x steps. Each thread has a share of the buffer and visits every level once, in
// its own order: at aggregation step w it exchanges partial sums with the neighbours at level(t,
// w); broadcast step w goes the same way back, over level(t, k-1-w). Nothing is stored but these
// orders: every question is answered by O(k) arithmetic on digits, so a plan for 65536 servers
// takes as much memory as one for 4.
//
// Layout. The buffer is divided in units of kUnitBytes, so that every range but the last begins and
// ends on a 64-byte boundary. The thread shares come first, by thread; each share is divided by the
// digits of the piece's owner in the order in which the thread's steps consume them, step 0's digit
// most significant. A range of U units is divided into n sub-ranges, sub-range i being units
// [U*i/n, U*(i+1)/n): any of them may be empty, and the last unit of the buffer may be partial. So
// at every step the active range of a server is contiguous and sub-range y of it goes to the
// neighbour with digit y.
//
// Streams. At thread t's aggregation step w, what a sends to its neighbour b is the stream (t, w,
// receiver b): the stream_pieces(t, w) pieces whose owners agree with b at the levels of steps
// 0..w. They are sent in an order that depends on the receiver alone: piece number `index`, read as
// a mixed radix number of r(w+1), ..., r(k-1) (the first most significant), has the owner digit
// (b's digit + r(u)) mod radix at level(t, u). So all senders to one receiver send in the same
// order, which completes its pieces one after the other; the pieces that b keeps at its next step
// (r = 0) come first, then those that it passes on to its next neighbour, and in each later step no
// two senders begin with the same receiver. In the broadcast stage the results flow the other way,
// from b to each of its neighbours at that level, the same pieces in the same order.
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

#include "control/plan/pieces.h"
#include "control/plan/topology.h"

namespace gradcube::control {

inline constexpr uint64_t kUnitBytes = 64;

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool operator==(const ByteRange&) const = default;
};

enum class Stage { aggregation, broadcast };
std::string_view stage_name(Stage stage);

// What happens among the n servers under one switch at a step. mesh: each sends each its part
// directly (BML).
enum class Pattern { mesh };

struct Step {
  unsigned level = 0;
  Pattern pattern = Pattern::mesh;

  bool operator==(const Step&) const = default;
};

// What a server gives to, and gets from, one neighbour in one step of one thread.
struct Exchange {
  ServerId peer = 0;
  PieceSet send;
  PieceSet receive;

  bool operator==(const Exchange&) const = default;
};

class Plan {
 public:
  // threads[t][w] is thread t's aggregation step w. Throws std::invalid_argument when there is no
  // thread, or a thread does not visit every level of the topology exactly once.
  Plan(std::string algorithm, Topology topology, const std::vector<std::vector<Step>>& threads);

  const std::string& algorithm() const { return algorithm_; }
  const Topology& topology() const { return topology_; }
  const AddressSpace& space() const { return topology_.space(); }
  uint32_t servers() const { return topology_.servers(); }
  unsigned threads() const { return static_cast<unsigned>(threads_.size()); }
  unsigned steps() const { return topology_.levels(); }  // of one stage
  uint32_t pieces() const { return threads() * servers(); }

  unsigned level(unsigned thread, unsigned step) const { return threads_[thread][step].level; }
  Pattern pattern(unsigned thread, unsigned step) const { return threads_[thread][step].pattern; }
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

  static ServerId owner(PieceId piece) { return piece.owner; }

  // Byte ranges in a buffer of `bytes` bytes (any number; see Layout above).
  ByteRange thread_range(unsigned thread, uint64_t bytes) const;
  ByteRange piece_range(PieceId piece, uint64_t bytes) const;

  // What `server` still has to aggregate before aggregation step `step` (0..steps()): the pieces
  // whose owners agree with it at the levels of the steps before. step_range(t, b, w + 1) is the
  // stream (t, w, receiver b), and step_range(t, s, steps()) the piece that s owns.
  ByteRange step_range(unsigned thread, ServerId server, unsigned step, uint64_t bytes) const;

  // Streams (see above). `step` is always the aggregation step, in the broadcast stage too.
  uint32_t stream_pieces(unsigned thread, unsigned step) const {
    return threads_[thread][step].later_pieces;
  }
  ServerId stream_piece_owner(unsigned thread, unsigned step, ServerId receiver,
                              uint32_t index) const;
  // The inverse; the owner must be one of the stream's.
  uint32_t stream_index(unsigned thread, unsigned step, ServerId receiver, ServerId owner) const;

  // Everything that `server` exchanges in thread `thread` at step `step` of the stage, by ascending
  // digit of the peer; the paper's lines 6..9 and 11..14 of Algorithm 1. For people, JSON and the
  // verifier.
  std::vector<Exchange> exchanges(ServerId server, unsigned thread, Stage stage,
                                  unsigned step) const;

  // The set of pieces that `server` still has to aggregate after aggregation step `step`: the
  // paper's CalcGset(server, step).
  PieceSet piece_set(ServerId server, unsigned thread, unsigned step) const;

 private:
  struct PlannedStep {
    unsigned level = 0;
    Pattern pattern = Pattern::mesh;
    uint32_t later_pieces = 1;  // the product of the radices of the later steps
  };

  std::string algorithm_;
  Topology topology_;
  std::vector<std::array<PlannedStep, kMaxLevels>> threads_;
};

}  // namespace gradcube::control

#endif
