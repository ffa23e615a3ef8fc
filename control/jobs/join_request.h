// What a trainer asks for when it joins a job, and the words that all job control shares.
#ifndef GRADCUBE_CONTROL_JOBS_JOIN_REQUEST_H_
#define GRADCUBE_CONTROL_JOBS_JOIN_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_options.h"
#include "control/jobs/job_owner.h"
#include "protocol/job_id.h"

namespace gradcube::control {

using protocol::JobId;

inline constexpr unsigned kMaxJobs = 64;

// What a server gathers in which no trainer of its own has joined: of jobs with a trainer of one
// other server, and of all; tenants share both (fair_share.h). More than a server has, as some may
// be those that its trainers have just left, and more than can begin, as each needs one of the
// kMaxJobs here.
inline constexpr unsigned kMostGatheredForOne = 2 * kMaxJobs;
inline constexpr unsigned kMostGathered = 4 * kMaxJobs;

// The process of a session's trainer, as the kernel reports it (SO_PEERCRED).
struct TrainerInfo {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;

  bool operator==(const TrainerInfo&) const = default;
};

// Of the first trainer of a server; the others there ask for the same.
struct JoinRequest {
  std::string name;
  bcube::ServerId server = 0;
  TrainerInfo trainer;
  JobOptions options;
  std::optional<std::uint32_t> rank;  // of its server: several trainers there share it
  JobOwner owner{};
};

// A collective of a job, by its lane and its number there: from 1.
struct CollectiveName {
  unsigned lane = 0;
  std::uint64_t number = 0;

  bool operator==(const CollectiveName&) const = default;
};

// In the place of a collective's number: a message between trainers, whose lane says nothing.
inline constexpr std::uint64_t kMessageNumber = 0;

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOIN_REQUEST_H_
