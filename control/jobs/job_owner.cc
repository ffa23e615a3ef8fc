#include "control/jobs/job_owner.h"

#include <array>
#include <cstring>
#include <string>

#include "control/base/hkdf.h"

namespace gradcube::control {

JobOwner job_owner_of(std::string_view job, std::string_view secret, std::uint32_t user, bool own) {
  if (secret.empty()) return own ? kOwnUser : JobOwner::of_user(user);
  std::string text = "gradcube job secret";
  text += '\0';
  text += job;
  text += '\0';
  text += secret;
  const std::array<std::uint8_t, 32> digest = sha256(text);
  std::uint64_t halves[2];
  std::memcpy(halves, digest.data(), sizeof halves);
  return JobOwner::of_secret(halves[0], halves[1]);
}

}  // namespace gradcube::control
