// Who may join a job beside its name: two jobs of one name, which different users have opened, are
// two jobs, and never meet. A job belongs to
//
//   the daemon's own user and root, who share their jobs: the cluster of one user needs no more
//   another user, by his number
//   all who know its secret: trainers of any users that give the same one
//
// Daemons tell each other the owner with each message of a job; of a secret it is a hash. Plain
// data; any thread.
#ifndef GRADCUBE_CONTROL_JOBS_JOB_OWNER_H_
#define GRADCUBE_CONTROL_JOBS_JOB_OWNER_H_

#include <cstdint>
#include <string_view>

namespace gradcube::control {

struct JobOwner {
  std::uint64_t high = 0;  // 0: not of a secret
  std::uint64_t low = 0;

  static constexpr JobOwner of_user(std::uint32_t user) { return {0, std::uint64_t{user} + 1}; }
  // The first 128 bits of a hash.
  static constexpr JobOwner of_secret(std::uint64_t first, std::uint64_t second) {
    return {first | 1, second};
  }

  // In a time that does not depend on where they differ.
  constexpr bool operator==(const JobOwner& other) const {
    return ((high ^ other.high) | (low ^ other.low)) == 0;
  }
};

// Of the daemon's own user and of root.
inline constexpr JobOwner kOwnUser{};

// Of the job that a trainer asks for. own: the user is the daemon's own, or root. Without a secret
// it is empty. The hash of a secret depends on the job's name: who has seen that of one job knows
// nothing of another's.
JobOwner job_owner_of(std::string_view job, std::string_view secret, std::uint32_t user, bool own);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOB_OWNER_H_
