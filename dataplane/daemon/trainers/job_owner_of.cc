#include "dataplane/daemon/trainers/job_owner_of.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "control/base/sha256.h"

namespace gradcube::dataplane {

control::JobOwner job_owner_of(std::string_view job, std::string_view secret, uid_t user,
                               bool own) {
  if (secret.empty()) return own ? control::kOwnUser : control::JobOwner::of_user(user);
  std::string text = "gradcube job secret";
  text += '\0';
  text += job;
  text += '\0';
  text += secret;
  const std::array<std::uint8_t, 32> digest = control::sha256(text);
  std::uint64_t halves[2];
  std::memcpy(halves, digest.data(), sizeof halves);
  return control::JobOwner::of_secret(halves[0], halves[1]);
}

}  // namespace gradcube::dataplane
