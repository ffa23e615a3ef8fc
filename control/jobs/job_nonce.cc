#include "control/jobs/job_nonce.h"

#include <array>
#include <fmt/format.h>
#include <string>

#include "control/base/hkdf.h"
#include "control/jobs/job_messages.h"

namespace gradcube::control {

JobNonce job_nonce(const JobDescriptor& job) {
  std::string text = fmt::format("gradcube job {}", job.id);
  for (const JobMember& member : job.members) {
    text +=
        fmt::format(" {}.{}.{}.{}", member.server, member.rank, member.incarnation, member.attempt);
  }
  const std::array<std::uint8_t, 32> digest = sha256(text);
  const auto number = [&digest](std::size_t begin) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value = value << 8 | digest[begin + i];
    return value;
  };
  return {number(0), number(8)};
}

}  // namespace gradcube::control
