// What the executors of a plan send each other, written out as lists of pieces.
//
// The lists are read off the streams: every position of every thread of every server is asked for
// its bytes, with the functions that the data path calls (ThreadSchedule, CollectiveLayout). The
// buffer that is laid out has one unit, and so one segment, for each piece; a piece is recognised
// by its bytes, and belongs to the server that still works on them after its last step.
//
// For the verifier and tests: takes memory and time in proportion to threads x servers.
#ifndef GRADCUBE_CONTROL_PLAN_STREAMS_H_
#define GRADCUBE_CONTROL_PLAN_STREAMS_H_

#include <cstdint>
#include <stdexcept>
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

// What a server sends to, and gets from, one neighbour in one step of one thread, in the order of
// the stream.
struct Transfer {
  ServerId peer = 0;
  std::vector<PieceId> send;
  std::vector<PieceId> receive;
};

class Streams {
 public:
  // Keeps a reference to the plan. Throws a PlanError unless the pieces fill the buffer exactly.
  explicit Streams(const Plan& plan);

  // All that `server` sends and receives in a step of a stage, one entry for each neighbour.
  std::vector<Transfer> transfers(ServerId server, unsigned thread, Stage stage,
                                  unsigned step) const;

  // Throws a PlanError unless every position needs the right one: what at_previous_step(),
  // at_next_step() and result_source() name holds the same piece, in an earlier step.
  void check_dependencies() const;

 private:
  struct Member {
    ThreadSchedule schedule;
    CollectiveLayout layout;
  };

  const Member& member(ServerId server, unsigned thread) const {
    return members_[std::size_t{thread} * plan_.servers() + server];
  }
  std::size_t unit_at(const Member& member, unsigned w, unsigned r, std::uint32_t q) const;
  PieceId piece_at(const Member& member, unsigned w, unsigned r, std::uint32_t q) const {
    return piece_of_unit_[unit_at(member, w, r, q)];
  }
  std::vector<PieceId> stream(const Member& member, unsigned w, unsigned r) const;
  void check_steps(ServerId server, const Member& member, unsigned w) const;
  void check_results(ServerId server, const Member& member, unsigned w) const;

  const Plan& plan_;
  std::vector<Member> members_;  // [thread][server]
  std::vector<PieceId> piece_of_unit_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_STREAMS_H_
