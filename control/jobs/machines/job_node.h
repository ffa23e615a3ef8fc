// The job control of one daemon: its agents and the leaders of jobs whose lowest member is its
// server. Finds the addressee of each message, makes and forgets leaders and agents:
//
//   - it is told only what comes from the incarnation that speaks for its server
//     (introductions.h); what was meant for another incarnation of this one is dropped;
//   - another incarnation of a server means that all its former agents and leaders are gone.
//
// A Join of another server's trainer begins a leader here, so others could make any number of them:
// too many are refused (kMostGathered, kMostGatheredForOne), and too many of one user before
// (fair_share.h).
//
// An agent has one job. It is remembered for a while which agents a job that has ended here had: a
// Join of one of them that comes late begins no other job.
//
// Messages to the own server are delivered within the same call and never come out. After each call
// `out` holds what is to be done, in order.
//
// Single-threaded, no I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_MACHINES_JOB_NODE_H_
#define GRADCUBE_CONTROL_JOBS_MACHINES_JOB_NODE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/base/fair_share.h"
#include "control/jobs/job_actions.h"
#include "control/jobs/machines/job_agent.h"
#include "control/jobs/machines/job_leader.h"

namespace gradcube::control {

class JobNode {
 public:
  // `incarnation`: not that of an earlier daemon of this server, and not 0. `id_seed`:
  // different at each server and each start, so that job ids differ.
  JobNode(bcube::ServerId server, Incarnation incarnation, const bcube::AddressSpace& space,
          const JobTiming& timing, std::uint32_t id_seed);

  // How many a user may have on this server at a time, and how they are divided. By default one may
  // have as many as the server holds.
  void set_jobs_per_user(unsigned jobs, FairShare share) {
    jobs_per_user_ = jobs;
    share_ = share;
  }

  // The cluster's key by which jobs begin from now on, those whose trainers wait among them.
  void set_key(KeyId key);

  // Why a trainer of this server may not join; nothing if join() would take it.
  std::optional<std::string> objection(const JoinRequest& request) const;
  // A trainer of this server joins: the attempt that names its agent from now on, or why not. It
  // may take the name of a trainer that has gone, whose job may still be ending. If the leader is
  // on this server, notices for the new attempt may come out of this very call.
  std::variant<Attempt, Refused> join(const JoinRequest& request, TransportFacts transport,
                                      Instant now, JobActions& out);
  void on_message(const JobMessage& message, Instant now, JobActions& out);
  // Of an attempt that is over: nothing happens, but an inquiry is answered.
  void on_event(Attempt attempt, const JobEvent& event, Instant now, JobActions& out);
  // This incarnation speaks for the server.
  void on_heard(bcube::ServerId server, Incarnation incarnation, Instant now, JobActions& out);
  // Nothing was heard of it for the liveness time. `no_way`: every path to it begins with a link
  // that is down.
  void on_server_silent(bcube::ServerId server, bool no_way, Instant now, JobActions& out);
  void on_time(Instant now, JobActions& out);
  std::optional<Instant> deadline() const;

  // Whom to greet: of each of this server's jobs, the servers that come next to it in its lines
  // (bcube::next_in_lines()). They need not be neighbours on a torus. Ascending.
  std::vector<bcube::ServerId> greeted() const;
  // Whose silence matters: of those, the ones whose jobs have been set up. Ascending.
  std::vector<bcube::ServerId> watched() const;
  // No state of any job is left.
  bool idle() const { return agents_.empty() && leaders_.empty(); }
  // Null if it is over.
  const JobAgent* agent(Attempt attempt) const;
  const std::map<Attempt, JobAgent>& agents() const { return agents_; }
  const std::map<JobId, JobLeader>& leaders() const { return leaders_; }

 private:
  void dispatch(const JobMessage& message, Instant now, JobActions& out);
  void dispatch_to_leader(const JobMessage& message, Instant now, JobActions& out);
  JobLeader* leader_for(const JobMessage& message);
  void begin_job(const JobMessage& message, const Join& join, Instant now, JobActions& out);
  std::optional<std::string> too_many(const JoinRequest& request, unsigned jobs,
                                      unsigned of_user) const;
  std::string too_many_for(const JobMessage& message, const Join& join) const;
  void server_gone(bcube::ServerId server, const std::string& why, Instant now, JobActions& out);
  void settle(Instant now, JobActions& out);
  void forget_what_is_over(Instant now);
  bool answer_late_join(const JobMessage& message, JobActions& out) const;
  void unknown(const JobMessage& message, JobActions& out) const;
  void answer(const JobMessage& message, JobBody body, JobActions& out) const;
  void answer_seek(const JobMessage& message, JobActions& out) const;

  bcube::ServerId server_;
  Incarnation incarnation_;
  bcube::AddressSpace space_;
  JobTiming timing_;
  unsigned jobs_per_user_ = kMaxJobs;
  FairShare share_;
  std::map<bcube::ServerId, Incarnation> incarnations_;  // that speak for them
  std::map<Attempt, JobAgent> agents_;
  std::map<JobId, JobLeader> leaders_;
  struct Past {
    JobEnd agent;
    std::string why;
    Instant until;
  };
  std::deque<Past> past_;  // by time
  Attempt last_attempt_ = 0;
  JobId next_id_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MACHINES_JOB_NODE_H_
