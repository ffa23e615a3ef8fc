// What the daemon tells people about its jobs: the facts that `gradcube status` shows.
#ifndef GRADCUBE_DATAPLANE_DAEMON_JOB_REPORT_H_
#define GRADCUBE_DATAPLANE_DAEMON_JOB_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"

namespace gradcube::dataplane {

// One job, as `status` shows it. Trainers that have left are not in it.
struct JobFacts {
  struct Trainer {
    bcube::ServerId server = 0;
    std::uint32_t pid = 0;
    std::uint64_t submitted = 0;  // collectives
    std::uint64_t completed = 0;
  };
  std::string name;
  std::uint32_t id = 0;
  std::uint16_t epoch = 0;
  std::string state;
  std::vector<Trainer> trainers;  // by server
  std::uint64_t collectives = 0;  // completed by all of its trainers
  // Whom the others wait for, ascending. While the job gathers: the servers whose trainers have not
  // joined. While it runs: those that have not submitted the oldest collective that is not
  // completed everywhere, if another trainer has submitted it. Empty when nobody waits.
  std::vector<bcube::ServerId> waiting_for;
  std::int64_t waiting_ms = 0;  // how long they have waited, to a tenth of a second
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_JOB_REPORT_H_
