#include "cli/cluster/available_memory.h"

#include <algorithm>
#include <fstream>

namespace gradcube::cli {

std::optional<std::uint64_t> number_after(const std::filesystem::path& file,
                                          const std::string& key) {
  std::ifstream stream(file);
  std::string word;
  if (key.empty()) {
    std::uint64_t value = 0;
    if (stream >> value) return value;
    return std::nullopt;
  }
  while (stream >> word) {
    std::uint64_t value = 0;
    if (word == key && stream >> value) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> available_memory() {
  auto available = number_after("/proc/meminfo", "MemAvailable:");
  if (available) *available *= 1024;
  const auto limit = number_after("/sys/fs/cgroup/memory.max", "");
  const auto used = number_after("/sys/fs/cgroup/memory.current", "");
  if (limit && used && *limit >= *used) {
    available = std::min(available.value_or(*limit - *used), *limit - *used);
  }
  return available;
}

}  // namespace gradcube::cli
