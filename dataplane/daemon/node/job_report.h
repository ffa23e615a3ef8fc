// What the daemon tells people about its jobs: the facts that `gradcube status` shows, and the
// messages about a disagreement or an overflow.
//
// Pure functions of what the nodes hand in. Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_NODE_JOB_REPORT_H_
#define GRADCUBE_DATAPLANE_DAEMON_NODE_JOB_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_actions.h"
#include "control/jobs/job_options.h"
#include "control/jobs/job_owner.h"
#include "dataplane/engine/engine.h"
#include "dataplane/engine/lane_plan.h"
#include "dataplane/engine/session/session.h"

namespace gradcube::dataplane {

// stopping: after a failure or a trainer's leaving, until it goes on or ends.
enum class JobState { gathering, running, stopping, aborted };
std::string_view state_name(JobState state);

// Collectives of each lane.
struct LaneCounts {
  control::LaneNumbers published;  // taken from the trainer
  control::LaneNumbers completed;  // ended, in order
};

// A job, as a node with trainers of it knows it, and as all nodes of a process do.
struct JobHead {
  std::string name;
  control::JobOwner owner{};
  protocol::JobId id = protocol::kNoJob;  // once it is known
  control::Epoch epoch = 0;
  JobState state{};
  std::string why;  // it stops, or was aborted
  control::JobOptions options;
  unsigned window = 0;  // segments per flow: the least that is offered, or agreed; 0: not known
  std::uint64_t reserved_bytes = 0;  // of packet memory
  control::KeyId key = 0;            // of the cluster, by which it has begun; 0: none, or not yet
};

// One job, as `status` shows it. Trainers that have left are not in it.
struct JobFacts : JobHead {
  struct Trainer {
    bcube::ServerId server = 0;
    std::uint32_t pid = 0;
    LaneCounts counts;
    std::uint32_t uid = 0;
    std::uint64_t heap_bytes = 0;  // of its heap that it may use now
    unsigned local = 0;            // its number among the job's trainers on its server
    MailTable::Counts messages;    // to and from other trainers

    std::uint64_t submitted() const;  // in all lanes
    std::uint64_t completed() const;
  };
  std::vector<Trainer> trainers;  // by server and number there
  std::uint64_t collectives = 0;  // completed by all of its trainers, over all lanes
  // Whom the others wait for, ascending. While the job gathers: the servers whose trainers have not
  // joined. While it runs: those that are late (control/status/job_progress.h).
  std::vector<bcube::ServerId> waiting_for;
  std::int64_t waiting_ms = 0;  // how long they have waited, to a tenth of a second
};

// A trainer, as its node sees it, and the job as it knows it.
struct MemberFacts : JobHead, JobFacts::Trainer {};

// Everything but waiting_ms. Of the trainers that have joined at `servers` (ascending), the nodes
// of this process; of other servers nothing is known.
std::vector<JobFacts> job_facts(const std::vector<MemberFacts>& trainers,
                                const std::vector<bcube::ServerId>& servers);

// Since when jobs wait for some of their trainers.
class WaitTimes {
 public:
  // `jobs` are all jobs. Notes which of them wait now. To be called about every 100 ms.
  void note(const std::vector<JobFacts>& jobs, control::Instant now);

  // How long the job has waited for what it waits for; 0 if that is new.
  std::int64_t milliseconds(const JobFacts& job, control::Instant now) const;

 private:
  struct Wait {
    std::uint64_t collectives = 0;  // completed by then; only a change of it matters
    bool to_join = false;
    control::Instant since{};
    bool is_of(const JobFacts& job) const;
  };
  // Jobs have no id before their leaders have answered.
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t, protocol::JobId>;
  static Key key_of(const JobFacts& job);

  std::map<Key, Wait> waits_;
};

// What a trainer has submitted: "all-reduce of 5003 float32 sum", or "nothing yet".
std::string describe(const std::optional<CollectiveRequest>& request);

// The same of all trainers of a server: once if they have submitted the same, else "trainer 0:
// all-reduce of 5003 float32 sum, trainer 1: nothing yet".
std::string describe(const std::vector<std::optional<CollectiveRequest>>& requests);

// Where an engine met a contribution that does not fit: "server [1,0], thread 0, step 1"; in a lane
// that chooses among plans "server [1,0], thread 0 of hips:root, step 1". The plans are the job's.
std::string describe_place(const EngineEvent& event, const LanePlans& plans,
                           const bcube::AddressSpace& space);

// Which elements of an integer average overflowed, and where.
std::string describe_overflow(const control::JobDescriptor& job, const EngineEvent& event,
                              const LanePlans& plans, const bcube::AddressSpace& space);

// How a job's end divides its collectives, for the trainers that remain: "; collective 7 was the
// last that ended alike on all of the others": well, or failed with a disagreement.
std::string describe_common(const std::optional<control::LaneNumbers>& common);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_NODE_JOB_REPORT_H_
