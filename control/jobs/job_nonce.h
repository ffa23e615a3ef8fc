// What makes a job another one than all jobs before and after it, on any daemons of the cluster:
// its frames' keys are derived from it (control/settings/cluster_key.h).
//
// It need not be secret. Every member adds the random number of its daemon, and how many trainers
// have joined there, so each of them alone makes sure that it does not come again.
#ifndef GRADCUBE_CONTROL_JOBS_JOB_NONCE_H_
#define GRADCUBE_CONTROL_JOBS_JOB_NONCE_H_

#include <cstdint>

namespace gradcube::control {

struct JobDescriptor;

struct JobNonce {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool operator==(const JobNonce&) const = default;
};

// Epochs have the same.
JobNonce job_nonce(const JobDescriptor& job);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOB_NONCE_H_
