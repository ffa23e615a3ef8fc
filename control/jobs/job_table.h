// The jobs and their members, for one process that runs all servers.
//
// A job is a tenant with one trainer per server. It is `gathering` until a trainer has joined on
// every server; then it is `running`. When a member leaves or dies while others remain, the job
// becomes `aborted` for good: the caller tells the others, and no trainer can join it any more. A
// trainer that joins the same name begins a new job. A job without members is forgotten. A job is
// aborted whether or not collectives are in flight; the caller knows about those.
//
// The engines have room for kMaxJobs jobs, and a JobId names the place of its job there
// (job_index). retire() gives the place of an aborted job back before its last member has left.
//
// Identity on the wire: protocol/job_id.h. The epoch of a job counts its resets. A failed
// collective begins a new epoch, and frames of older epochs are stale.
//
// Single-threaded: the control thread owns it. No I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_JOB_TABLE_H_
#define GRADCUBE_CONTROL_JOBS_JOB_TABLE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bcube_forwarding/address.h"
#include "protocol/job_id.h"

namespace gradcube::control {

using protocol::job_index;
using protocol::job_nonce;
using protocol::JobId;
using protocol::kMaxJobs;

// The process of a session's trainer, as the kernel reports it (SO_PEERCRED).
struct TrainerInfo {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;

  bool operator==(const TrainerInfo&) const = default;
};

enum class JobState { gathering, running, aborted };
std::string_view state_name(JobState state);

struct JobPlace {
  JobId job = 0;
  std::uint32_t rank = 0;  // the server's number
  std::uint32_t size = 0;  // trainers in the complete job
  std::uint16_t epoch = 0;
};

struct Refusal {
  std::string message;
};

struct Departed {
  std::string message;     // for the remaining members
  bool forgotten = false;  // no member remains; the JobId is invalid from now on
};

// One job in the table.
struct Job {
  JobId id = 0;
  std::string name;
  JobState state = JobState::gathering;
  std::uint16_t epoch = 0;
  std::uint32_t joined = 0;                         // members now
  std::vector<std::optional<TrainerInfo>> members;  // by server
};

class JobTable {
 public:
  // `nonce_seed` makes the nonces of a restarted daemon differ from those of its predecessor.
  JobTable(const bcube::AddressSpace& space, std::uint32_t nonce_seed);

  std::variant<JobPlace, Refusal> join(std::string_view name, bcube::ServerId server,
                                       TrainerInfo trainer);

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

  // No engine has anything of this aborted job any more: its place is free for another job. It is
  // found and listed until its last member has left.
  void retire(JobId job);

  // "1 of 9 trainers has not joined job "mnist": server [2,1]". Empty unless the job is gathering.
  std::string missing(JobId job) const;

  const Job* find(JobId job) const;  // null if it does not exist, or is another incarnation
  // Those that have a place, by index, then those that were retired.
  std::vector<const Job*> jobs() const;

 private:
  Job* find_mutable(JobId job);
  Job* open_job(std::string_view name);  // one that accepts members; null if there is none
  Job* create(std::string_view name);    // null if the table is full
  std::optional<Departed> depart(JobId job, bcube::ServerId server, std::string_view how);
  void forget(JobId job);

  bcube::AddressSpace space_;
  std::uint32_t next_nonce_;
  std::array<std::optional<Job>, kMaxJobs> jobs_;
  std::map<JobId, Job> retired_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOB_TABLE_H_
