// What the executors of a plan send each other, written out as lists of pieces.
//
// The lists are read off the streams: every position of every thread of every rank is asked for its
// bytes, with the functions that the data path calls (ThreadSchedule, CollectiveLayout). In the
// buffer that is laid out each piece has as many units as its thread's weight, and one segment; a
// piece is recognised by its bytes, and belongs to the rank that still works on them after its last
// step.
//
// For the verifier and tests: takes memory and time in proportion to threads x ranks.
#ifndef GRADCUBE_CONTROL_PLAN_STREAMS_H_
#define GRADCUBE_CONTROL_PLAN_STREAMS_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "control/plan/collective_layout.h"
#include "control/plan/pieces.h"
#include "control/plan/plan.h"
#include "control/plan/thread_schedule.h"

namespace gradcube::control {

// A plan that is not an all-reduce, or streams that do not execute it.
class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a rank sends to, and gets from, one peer in one step of one thread, in the order of the
// stream.
struct Transfer {
  Rank peer = 0;
  std::vector<PieceId> send;
  std::vector<PieceId> receive;
};

class Streams {
 public:
  // Keeps a reference to the plan. Throws a PlanError unless the pieces fill the buffer exactly,
  // and std::invalid_argument for a plan that ThreadSchedule refuses.
  explicit Streams(const Plan& plan);

  // All that `rank` sends and receives in a step of a stage, one entry for each peer. Nothing for a
  // step that the thread does not have.
  std::vector<Transfer> transfers(Rank rank, unsigned thread, Stage stage, unsigned step) const;

  // Throws a PlanError unless every position needs the right one: what at_previous_step(),
  // at_next_step() and result_source() name holds the same piece, in an earlier step.
  void check_dependencies() const;

 private:
  struct Member {
    ThreadSchedule schedule;
    CollectiveLayout layout;
  };

  const Member& member(Rank rank, unsigned thread) const {
    return members_[std::size_t{thread} * plan_.ranks() + rank];
  }
  // The number of the piece whose bytes a position has, in the order of the buffer.
  std::size_t number_at(const Member& member, unsigned w, unsigned r, std::uint32_t q) const;
  PieceId piece_at(const Member& member, unsigned w, unsigned r, std::uint32_t q) const {
    return pieces_[number_at(member, w, r, q)];
  }
  std::vector<PieceId> stream(const Member& member, unsigned w, unsigned r) const;
  void check_steps(const Member& member, unsigned w) const;
  void check_results(const Member& member, unsigned w) const;
  std::string name(Rank rank) const { return plan_.space().text(plan_.placement().server(rank)); }

  const Plan& plan_;
  std::vector<Member> members_;  // [thread][rank]
  std::vector<PieceId> pieces_;  // in the order of the buffer
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_STREAMS_H_
