// What the daemon tells people about its jobs: the facts that `gradcube status` shows, the answer
// to a trainer that asks why its collective is not done, and the messages about a disagreement or
// an overflow.
//
// Pure functions of what the job coordinator hands in. Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_JOB_REPORT_H_
#define GRADCUBE_DATAPLANE_DAEMON_JOB_REPORT_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_table.h"
#include "control/jobs/join_request.h"
#include "dataplane/engine/engine.h"
#include "dataplane/engine/session.h"

namespace gradcube::dataplane {

// One job, as `status` shows it. Trainers that have left are not in it.
struct JobFacts {
  struct Trainer {
    bcube::ServerId server = 0;
    std::uint32_t pid = 0;
    // Collectives.
    struct Lane {
      std::uint64_t submitted = 0;
      std::uint64_t completed = 0;
    };
    std::vector<Lane> lanes;

    std::uint64_t submitted() const;  // in all lanes
    std::uint64_t completed() const;
  };
  std::string name;
  std::uint32_t id = 0;
  std::uint16_t epoch = 0;
  std::string state;
  std::vector<control::LaneOptions> lanes;
  std::uint32_t weight = 1;
  std::vector<Trainer> trainers;  // by server
  std::uint64_t collectives = 0;  // completed by all of its trainers, over all lanes
  // Whom the others wait for, ascending. While the job gathers: the servers whose trainers have not
  // joined. While it runs: those that have not submitted the oldest collective of a lane that is
  // not completed everywhere, if another trainer has submitted it. Empty when nobody waits.
  std::vector<bcube::ServerId> waiting_for;
  std::int64_t waiting_ms = 0;  // how long they have waited, to a tenth of a second
};

// Everything but waiting_ms. trainers: those that have not left, by server.
JobFacts job_facts(const control::Job& job, std::vector<JobFacts::Trainer> trainers);

// Since when jobs wait for some of their trainers.
class WaitTimes {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // `jobs` are all jobs. Notes which of them wait now. To be called about every 100 ms.
  void note(const std::vector<JobFacts>& jobs, SteadyClock::time_point now);

  // How long the job has waited for what it waits for; 0 if that is new.
  std::int64_t milliseconds(const JobFacts& job, SteadyClock::time_point now) const;

 private:
  struct Wait {
    std::uint64_t collectives = 0;  // completed by then; only a change of it matters
    bool to_join = false;
    SteadyClock::time_point since;
    bool is_of(const JobFacts& job) const;
  };
  std::map<std::uint32_t, Wait> waits_;  // by job
};

using control::CollectiveName;

// Why a collective of a job is not done: who has not joined, who has not submitted it, or that all
// have. missing: JobTable::missing().
std::string explain_wait(const control::Job& job, const std::string& missing,
                         const std::vector<JobFacts::Trainer>& trainers, CollectiveName collective,
                         const bcube::AddressSpace& space);

// What a trainer has submitted as the collective that an event is about; nothing if it has not.
struct SubmittedBy {
  bcube::ServerId server = 0;
  std::optional<CollectiveRequest> request;
};

// Who submitted what, and where an engine noticed that it differs.
std::string describe_disagreement(const control::Job& job, const EngineEvent& event,
                                  const std::vector<SubmittedBy>& trainers,
                                  const bcube::AddressSpace& space);

// Which elements of an integer average overflowed, and where.
std::string describe_overflow(const control::Job& job, const EngineEvent& event,
                              const bcube::AddressSpace& space);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_JOB_REPORT_H_
