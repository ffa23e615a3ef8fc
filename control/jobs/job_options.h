// What the trainers of a job ask for when they join it, and must agree on.
#ifndef GRADCUBE_CONTROL_JOBS_JOB_OPTIONS_H_
#define GRADCUBE_CONTROL_JOBS_JOB_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"

namespace gradcube::control {

// A lane runs its collectives in order; different lanes do not wait for each other.
struct LaneOptions {
  std::string algorithm;
  std::int32_t priority = 0;  // a higher one is served first, within the job

  bool operator==(const LaneOptions&) const = default;
};

struct JobOptions {
  std::vector<LaneOptions> lanes;
  std::uint32_t weight = 1;              // among the jobs that share its links
  std::vector<bcube::ServerId> members;  // ascending, no server twice
  bool reproducible = false;             // results do not depend on the order of additions

  bool operator==(const JobOptions&) const = default;
};

// "all 9 servers", "2 servers [0,0] [0,1]", "10 servers [0,0] ... and 2 more".
std::string members_text(const std::vector<bcube::ServerId>& members,
                         const bcube::AddressSpace& space);

// "weight 2, lanes bml, bml (priority 1), 3 servers [0,0] [0,1] [0,2]", and ", reproducible" where
// it is: for a message that sets two of them side by side.
std::string describe(const JobOptions& options, const bcube::AddressSpace& space);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOB_OPTIONS_H_
