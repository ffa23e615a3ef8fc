// How the survivors of an aborted job agree on the last collective of each lane that ended on all
// of them, without a leader.
//
// Each survivor tells all others, again and again, whom it does not count any more (`gone`) and how
// far its own halted engines came. Sets of gone servers are joined. A survivor decides the least of
// the counts when every member that it still counts has told it the very same set, or when it hears
// of a decision by a member that it counts; from then on it tells its decision. It does not listen
// to a server that it has given up, and a server that learns that it was given up gives up the
// other.
//
// Two servers that both decided and count each other decided the same: sets only grow, counts stand
// still, and who has decided never again tells an undecided set. Servers that a partition parts may
// decide differently; each then knows that the other is gone.
//
// No I/O, no clock: who repeats messages and gives up silent servers is the agent.
#ifndef GRADCUBE_CONTROL_JOBS_MACHINES_ABORT_EXCHANGE_H_
#define GRADCUBE_CONTROL_JOBS_MACHINES_ABORT_EXCHANGE_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "control/jobs/job_messages.h"

namespace gradcube::control {

class AbortExchange {
 public:
  using Servers = std::set<bcube::ServerId>;

  AbortExchange(bcube::ServerId own, Servers members);

  // The engines stand still.
  void set_completed(LaneNumbers completed);
  void give_up(bcube::ServerId server);
  void on_abort(bcube::ServerId from, const Abort& abort);
  // The decision is known for certain: the leader's, or that nothing has begun.
  void decide(LaneNumbers common);
  // Takes no further part: the decision stays unknown.
  void withdraw() { withdrawn_ = true; }

  // No change to what the trainer is told from now on.
  bool over() const { return common_.has_value() || withdrawn_; }
  const std::optional<LaneNumbers>& common() const { return common_; }
  const Servers& gone() const { return gone_; }
  // Who has told no count.
  Servers silent() const;
  // Who is not known to have decided.
  const Servers& undecided() const { return undecided_; }
  Abort message(const std::string& why) const;

 private:
  struct Heard {
    Servers gone;
    std::optional<LaneNumbers> completed;
    bool decided = false;
  };
  void count_out(bcube::ServerId server);
  bool agrees(bcube::ServerId server) const;
  void recount();
  void decide_if_agreed();

  bcube::ServerId own_;
  Servers members_;
  Servers gone_;
  std::map<bcube::ServerId, Heard> heard_;
  // Of the members that are counted, without this one: who has not told the very same set with a
  // count, and who is not known to have decided. Kept up, because each of N members hears N times.
  Servers lacking_;
  Servers undecided_;
  std::optional<LaneNumbers> completed_;
  std::optional<LaneNumbers> common_;
  bool withdrawn_ = false;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MACHINES_ABORT_EXCHANGE_H_
