// The jobs and their members, for one process that runs all servers.
//
// A job is a tenant with one trainer on each of its member servers. It is `gathering` until a
// trainer has joined on every one; then it is `running`. When a member leaves or dies while others
// remain, the job becomes `aborted` for good: the caller tells the others, and no trainer can join
// it any more. A trainer that joins the same name begins a new job. A job without members is
// forgotten. A job is aborted whether or not collectives are in flight; the caller knows about
// those.
//
// The first trainer of a job decides its options (job_options.h); one that asks for others is
// refused. A member's rank is its server's place among the members, unless its trainers ask for
// ranks: then all must, for different ones.
//
// At most kMaxJobs jobs are gathering or running, or aborted and not yet retired. retire() says
// that no engine has anything of an aborted job any more.
//
// The epoch of a job counts its resets. A failed collective begins a new epoch, and frames of older
// epochs are stale.
//
// Single-threaded: the control thread owns it. No I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_JOB_TABLE_H_
#define GRADCUBE_CONTROL_JOBS_JOB_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_options.h"
#include "control/jobs/join_request.h"
#include "protocol/job_id.h"

namespace gradcube::control {

enum class JobState { gathering, running, aborted };
std::string_view state_name(JobState state);

struct JobPlace {
  JobId job = protocol::kNoJob;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;  // trainers in the complete job
  std::uint16_t epoch = 0;
};

struct Departed {
  std::string message;     // for the remaining members
  bool forgotten = false;  // no member remains; the JobId is invalid from now on
};

// One job in the table.
struct Job {
  struct Member {
    bcube::ServerId server = 0;
    std::uint32_t rank = 0;
    std::optional<TrainerInfo> trainer;  // while it is in the job
  };

  JobId id = protocol::kNoJob;
  std::string name;
  JobState state = JobState::gathering;
  std::uint16_t epoch = 0;
  JobOptions options;
  bool ranks_are_wished = false;
  std::vector<Member> members;  // by server, as in options.members

  // Null if the job has no member there.
  const Member* member(bcube::ServerId server) const;
  std::uint32_t size() const { return static_cast<std::uint32_t>(members.size()); }
  std::uint32_t joined() const;
};

class JobTable {
 public:
  // `id_seed` makes the job ids of a restarted daemon differ from those of its predecessor.
  JobTable(const bcube::AddressSpace& space, std::uint32_t id_seed);

  std::variant<JobPlace, Refusal> join(const JoinRequest& request);

  // Removes a member that left in good order, or that died. Returns nothing if the job does not
  // exist or has no trainer on this server.
  std::optional<Departed> leave(JobId job, bcube::ServerId server);
  std::optional<Departed> died(JobId job, bcube::ServerId server);
  // The same for a member that the daemon has evicted. `why` completes the message "the trainer ...
  // on server ... (pid ...) ".
  std::optional<Departed> evicted(JobId job, bcube::ServerId server, std::string_view why);

  // After a collective failed that all members survive (they disagreed on it). Returns the new
  // epoch; nothing if the job does not exist.
  std::optional<std::uint16_t> begin_reset(JobId job);

  // No engine has anything of this aborted job any more: it no longer counts against kMaxJobs. It
  // is found and listed until its last member has left.
  void retire(JobId job);

  // "1 of 9 trainers has not joined job "mnist": server [2,1]". Empty unless the job is gathering.
  std::string missing(JobId job) const;

  const Job* find(JobId job) const;  // null if it does not exist
  // In the order in which they began; those that were retired last.
  std::vector<const Job*> jobs() const;

 private:
  Job* find_mutable(JobId job);
  Job* open_job(std::string_view name);  // one that accepts members; null if there is none
  std::variant<Job*, Refusal> begin(const JoinRequest& request);
  std::optional<Refusal> objection(const Job& job, const JoinRequest& request) const;
  JobId fresh_id();
  std::optional<Departed> depart(JobId job, bcube::ServerId server, std::string_view how);
  void forget(JobId job);

  bcube::AddressSpace space_;
  std::uint32_t next_id_;
  std::vector<Job> jobs_;  // in the order in which they began
  std::map<JobId, Job> retired_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOB_TABLE_H_
