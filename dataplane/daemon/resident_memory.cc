#include "dataplane/daemon/resident_memory.h"

#include <fstream>
#include <string>

#include "dataplane/engine/memory/session_region.h"

namespace gradcube::dataplane {

namespace {

std::uint64_t read_resident_bytes() {
  std::ifstream file("/proc/self/smaps");
  std::uint64_t kilobytes = 0;
  bool trainers = false;
  for (std::string line; std::getline(file, line);) {
    const bool begins_mapping = line.find('-') < line.find(' ');
    if (begins_mapping) {
      trainers = line.find(kRegionName) != std::string::npos;
    } else if (!trainers && line.rfind("Rss:", 0) == 0) {
      kilobytes += std::stoull(line.substr(4));
    }
  }
  return kilobytes * 1024;
}

}  // namespace

std::uint64_t own_resident_bytes() {
  static CostlyNumber bytes(read_resident_bytes, [] { return std::chrono::steady_clock::now(); });
  return bytes.value();
}

}  // namespace gradcube::dataplane
