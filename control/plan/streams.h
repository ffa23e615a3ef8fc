// What the executors of a plan send each other, written out as lists of pieces.
//
// The lists are read off the streams: every position of every thread of every rank is asked for its
// bytes, with the functions that the data path calls (StreamPositions, CollectiveLayout). In the
// buffer that is laid out each piece has as many units as its thread's weight, and more where steps
// of the pattern root leave fewer pieces; a piece is
// recognised by its bytes, and belongs to the rank that still works on them after its last step.
// Segments are as long as a block of the depth that is looked at (stream_positions.h), and name its
// pieces in the order of the buffer.
//
// For the verifiers and tests. To construct it takes memory and time in proportion to threads x
// ranks, a few bytes and a microsecond for each: little for 65536 servers, too. What is asked of
// one rank takes time in proportion to its pieces.
#ifndef GRADCUBE_CONTROL_PLAN_STREAMS_H_
#define GRADCUBE_CONTROL_PLAN_STREAMS_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/base/pieces.h"
#include "control/plan/base/plan.h"
#include "control/plan/collective_layout.h"
#include "control/plan/thread_schedule.h"

namespace gradcube::control {

// A plan that is not an all-reduce, or streams that do not execute it.
class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a rank sends to one peer, and gets from the same or another, in one step of one thread, in
// the order of the stream.
struct Transfer {
  Rank peer = 0;  // that it sends to
  std::vector<PieceId> send;
  std::vector<PieceId> receive;
  Rank source = peer;  // that it gets from; in a ring another one
  unsigned round = 0;  // in a ring: what one brings, the next can send on
};

class Streams {
 public:
  // Keeps a reference to the plan. depth: from 1, of all threads that have so many steps; the
  // others have the most that they can. Throws a PlanError unless the pieces fill the buffer
  // exactly.
  Streams(const Plan& plan, unsigned depth);

  // All that `rank` sends and receives in a step of a stage: one entry for each peer of a mesh or a
  // root, and for each round of a ring. Nothing for a step that the thread does not have.
  std::vector<Transfer> transfers(Rank rank, unsigned thread, Stage stage, unsigned step) const;

  // What the rank sends to, or gets from, one peer of the step in a round. Nothing if it has no
  // such stream.
  std::vector<PieceId> sent(Rank rank, unsigned thread, Stage stage, unsigned step, Rank peer,
                            unsigned round) const {
    return exchanged(End::sender, rank, thread, stage, step, peer, round);
  }
  std::vector<PieceId> received(Rank rank, unsigned thread, Stage stage, unsigned step, Rank source,
                                unsigned round) const {
    return exchanged(End::receiver, rank, thread, stage, step, source, round);
  }

  // Throws a PlanError unless every position of the rank needs the right ones: what
  // at_previous_step(), at_next_step() and result_source() name holds the same pieces, in an
  // earlier step.
  void check_dependencies(Rank rank) const;

  // Throws a PlanError unless the rank's streams carry the pieces of the plan as people and JSON
  // read it, Plan::exchanges().
  void check_exchanges(Rank rank) const;

  // Throws a PlanError unless the first step of every rank and thread takes up each piece exactly
  // once, sending it before it has received anything, or adding to it: there the trainers of one
  // server are added (local_stage.h). Where steps double they are added before.
  void check_first_step() const;

 private:
  struct RankThread {
    ThreadSchedule schedule;
    CollectiveLayout layout;
  };

  RankThread rank_thread(Rank rank, unsigned thread) const;
  std::uint64_t piece_bytes(unsigned thread) const {
    return plan_.thread(thread).weight * kUnitBytes * (plan_.ranks() / plan_.pieces(thread));
  }
  // The numbers of the pieces whose bytes a position has, in the order of the buffer: from .first
  // to before .second.
  std::pair<std::size_t, std::size_t> numbers_at(const RankThread& at, unsigned w, unsigned r,
                                                 std::uint32_t q) const;
  std::vector<PieceId> pieces_at(const RankThread& at, unsigned w, unsigned r,
                                 std::uint32_t q) const;
  // What a rank sends to, or gets from, the peer at offset r in a round.
  enum class End { sender, receiver };
  std::vector<PieceId> exchanged(End end, Rank rank, unsigned thread, Stage stage, unsigned step,
                                 Rank peer, unsigned round) const;
  std::vector<PieceId> stream(const RankThread& at, End end, Stage stage, unsigned w, unsigned r,
                              unsigned round) const;
  void check_exchanges(Rank rank, unsigned thread, Stage stage, unsigned step) const;
  void check_steps(const RankThread& at, unsigned w) const;
  std::vector<PieceId> results_from(const RankThread& at, unsigned w,
                                    const StreamPositions::ResultSource& source) const;
  void check_results(const RankThread& at, unsigned w) const;
  std::string name(Rank rank) const { return plan_.space().text(plan_.placement().server(rank)); }

  const Plan& plan_;
  std::vector<std::uint32_t> segment_bytes_;  // [thread]
  std::vector<PieceId> pieces_;               // in the order of the buffer
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_STREAMS_H_
