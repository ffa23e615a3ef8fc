// Leads a job: gathers its trainers, sets it up, stops it after a failure, divides its collectives,
// starts it again, and ends it. One per job, at the node of the job's lowest member server, whether
// or not that server's trainer has joined yet.
//
// Each phase but `gathering` and `running` asks all members the same, repeats it to those that have
// not answered, and has a deadline. Who has not answered by then ends the job and is named; while
// all catch up, the job stops then.
//
//   gathering   until every member server has its trainers; one of which nothing is heard any more
//               is no member, until it joins again. A server whose trainer stays in another job of
//               this name, with other members, ends this one
//   preparing   all attach their engines, armed
//   starting    all begin to send
//   running     until a Disagree or a Leave that the job does not go on without. An agent of which
//               nothing is heard is asked whether it is still there
//   catching_up after a Disagree: all run on, until every server's trainers have submitted what
//               comes before the first collective that cannot be done, as of one that a trainer has
//               left without, or have all left, or the time for that is over
//   stopping    all take no more submissions and run on until every member has completed all that
//               can complete: what all have submitted, before the first disagreement of the lane.
//               After a disagreement the deadline is that of the next one to complete, or of the
//               next segment of one to pass. After a Leave it is of all, and until no member waits
//               for the end of a message that it has sent as a whole: who leaves may have received
//               it
//   resetting   all fail the same rest, and are armed in the next epoch; then starting
//   ending      all are told; then the leader is over
//
// An earlier failure of the same lane that turns up later becomes the cause of the stop: all hear
// of it, and are asked who submitted what as it.
//
// A trainer that leaves in order ends nothing for the others: all are told (departures.h). The
// Leave of the last trainer, and of one that the job cannot go on without, goes from stopping to
// ending; but if an overflow turns up meanwhile, as a trainer may leave with its own result, the
// others hear of that first, and the Leave comes again. What a phase has no use for is left to its
// sender's repetition.
//
// A trainer that joins anew, while the agent of its predecessor is still a member, ends nothing: it
// hears that the old job is ending, until it has.
//
// A collective completes on a server only after all have submitted the same as it. If a count says
// otherwise, the job ends: its outcome could not be the same everywhere. An overflow is different:
// where it was met the lane stands still, but servers that do not need the element may complete
// that collective and later ones. In such a lane counts beyond the goal do not end the job.
//
// Single-threaded, no I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_MACHINES_JOB_LEADER_H_
#define GRADCUBE_CONTROL_JOBS_MACHINES_JOB_LEADER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/jobs/job_actions.h"
#include "control/jobs/job_messages.h"

namespace gradcube::control {

class JobLeader {
 public:
  enum class Phase {
    gathering,
    preparing,
    starting,
    running,
    catching_up,
    stopping,
    resetting,
    ending,
    over
  };

  // `self.attempt` is 0. `options` are those of the first trainer.
  JobLeader(JobEnd self, JobId id, const std::string& name, const JobOptions& options,
            const bcube::AddressSpace& space, const JobTiming& timing, JobOwner owner = {});

  // By which the job begins if it has not been prepared: that of this server, the first member.
  void set_key(KeyId key);
  void on_message(const JobMessage& message, Turn turn);
  void on_server_gone(bcube::ServerId server, const std::string& why, Turn turn);
  void on_time(Turn turn);
  std::optional<Instant> deadline() const;

  Phase phase() const { return phase_; }
  bool over() const { return phase_ == Phase::over; }
  Epoch epoch() const { return epoch_; }
  JobId id() const { return id_; }
  const std::string& name() const { return name_; }
  const JobOwner& owner() const { return owner_; }
  // Whether a trainer of another incarnation of the server than this is a member.
  bool counts_on_another(bcube::ServerId server, Incarnation incarnation) const;
  // Whether this very trainer is one of the members.
  bool has(const JobEnd& agent) const;
  // Whether it gathers trainers, and one of this server's has joined.
  bool gathers_with(bcube::ServerId server) const;
  // Whether one of this user's trainers has joined.
  bool has_user(std::uint32_t uid) const;
  // Those that have joined.
  std::vector<JobEnd> agents() const;
  // Why the job ends; empty before.
  const std::string& why() const { return why_; }
  // "1 of 9 trainers has not joined job ...": empty when all have.
  std::string missing() const;

 private:
  // A trainer in another job of this name.
  struct Sighting {
    std::int32_t pid = 0;
    Instant since{};
    Instant heard{};
  };
  struct Member {
    bcube::ServerId server = 0;
    std::uint32_t rank = 0;
    std::optional<JobEnd> agent;  // once its trainer has joined
    std::optional<Join> join;
    Instant heard{};                    // of its agent
    bool answered = false;              // the request of this phase
    std::string absence;                // while it has not joined: what is known of a trainer there
    std::optional<Sighting> elsewhere;  // of that trainer
    LaneNumbers published;              // while all catch up; empty if it has not told
    bool is_missed = false;             // the job does not go on without one that has left
    std::optional<Held> held;           // of this stop, the newest counts
    std::uint32_t noted = 0;            // of the departures, that it knows
  };

  void handle(Member* member, const JobMessage& message, const Join& join, Turn turn);
  void handle(Member* member, const JobMessage&, const Elsewhere& elsewhere, Turn turn);
  void handle(Member* member, const JobMessage&, const Armed& armed, Turn turn);
  void handle(Member* member, const JobMessage&, const Started& started, Turn turn);
  void handle(Member* member, const JobMessage&, const Disagree& disagree, Turn turn);
  void handle(Member* member, const JobMessage&, const Counts& counts, Turn turn);
  void handle(Member* member, const JobMessage&, const Held& held, Turn turn);
  void handle(Member* member, const JobMessage& message, const Leave& leave, Turn turn);
  void handle(Member* member, const JobMessage&, const Noted& noted, Turn turn);
  void handle(Member* member, const JobMessage&, const Abort& abort, Turn turn);
  void handle(Member* member, const JobMessage& message, const Unknown&, Turn turn);
  template <typename NotForLeaders>
  void handle(Member*, const JobMessage&, const NotForLeaders&, Turn) {}

  std::string old_job_ends(const Member* member) const;
  std::optional<std::string> objection(const Member* member, const JobMessage& message,
                                       const Join& join) const;
  bool has_left(bcube::ServerId server, std::uint32_t local) const;
  bool goes_on_without(bcube::ServerId server, const Leave& leave) const;
  bool submits_no_more(bcube::ServerId server) const;
  std::uint64_t first_undone(const CollectiveName& failing) const;
  void note(bcube::ServerId server, const Leave& leave, Instant now);
  bool lacks_departures(const Member& member) const { return member.noted < departures_.size(); }
  bool any_lacks_departures() const;
  void tell_departures(const Member& member, JobActions& out) const;
  std::uint32_t missing_of(const Member& member) const;
  Member* find(bcube::ServerId server);
  void leave_out(Member& member);
  void end_if_deserted();
  void leave_out_silent(Instant now);
  void seek_missing(Turn turn);
  void seek_sign_of(const Member& member, Turn turn) const;
  bool is_fresh(const Sighting& sighting, Instant now) const;
  bool all_answered() const;
  void answered(Member& member, Turn turn);
  void enter(Phase phase, Turn turn);
  Instant longest(Phase phase) const;
  void begin_catching_up(const Disagreement& first, Turn turn);
  void note_failing(const Disagreement& what);
  bool has_caught_up(const Member& member) const;
  void end_catching_up_if_all_have(Turn turn);
  void stop(const std::optional<Disagreement>& first, const std::optional<Leave>& departure,
            Turn turn);
  bool all_held() const;
  LaneNumbers agreed(bool before_overflows) const;
  bool is_possible(const Disagreement& what) const;
  bool note_earlier(const std::vector<Disagreement>& found);
  bool note_overflow_before_departure();
  void ask_all(JobActions& out);
  void wait_on(Turn turn);
  std::optional<CollectiveName> asked() const;
  bool has_told(const Member& member) const;
  std::string disagreement() const;
  std::string late_text() const;
  void advance_stop(Turn turn);
  void reset(const LaneNumbers& done, Turn turn);
  void end(const std::string& why, std::set<bcube::ServerId> gone, Turn turn);
  std::string overdue() const;
  std::string overdue_collective() const;
  std::string why_it_stops() const;
  std::string reason_of_stop() const;
  JobBody request() const;
  JobDescriptor descriptor() const;
  void ask(JobActions& out) const;
  void send(const JobEnd& to, JobBody body, JobActions& out) const;

  JobEnd self_;
  JobId id_;
  std::string name_;
  JobOwner owner_;
  JobOptions options_;
  bcube::AddressSpace space_;
  JobTiming timing_;
  Phase phase_ = Phase::gathering;
  Epoch epoch_ = 0;
  bool ranks_are_wished_ = false;
  std::vector<Member> members_;  // by server
  std::optional<Instant> phase_deadline_;
  Instant next_ask_{};
  Instant asked_all_{};                // in this phase
  std::optional<Disagreement> first_;  // of this stop
  // While all catch up: the first collective of a lane that cannot be done.
  std::map<std::uint32_t, std::uint64_t> failing_;
  std::optional<Leave> departure_;     // of this stop: the job ends with it
  std::vector<Departure> departures_;  // that it goes on without
  JobCut cut_;
  std::string why_;
  std::set<bcube::ServerId> gone_;
  std::optional<LaneNumbers> common_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MACHINES_JOB_LEADER_H_
