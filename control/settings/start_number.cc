#include "control/settings/start_number.h"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "control/base/descriptor.h"

namespace gradcube::control {

namespace {

// Greater numbers than this, some 140,000 years, are not of a clock.
constexpr std::uint64_t kGreatestStart = std::uint64_t{1} << 62;

}  // namespace

std::uint64_t next_start_number(const RunDirectory& directory, const DaemonLock&,
                                std::chrono::system_clock::time_point now) {
  const auto time =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  std::uint64_t number = static_cast<std::uint64_t>(std::max<std::int64_t>(time, 1));
  const std::string name = (directory.path() / "started").string();
  const Descriptor file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return number;
  char text[32] = {};
  const ssize_t length = pread(file.get(), text, sizeof text - 1, 0);
  std::uint64_t last = 0;
  if (length > 0) std::from_chars(text, text + length, last);
  if (last < kGreatestStart) number = std::max(number, last + 1);
  // As long as the one before, or longer: never a number that is cut.
  const std::string line = std::to_string(number) + "\n";
  (void)!pwrite(file.get(), line.data(), line.size(), 0);
  return number;
}

}  // namespace gradcube::control
