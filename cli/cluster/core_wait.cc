#include "cli/cluster/core_wait.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/text/json_fields.h"

namespace gradcube::cli {
namespace {}  // namespace

std::vector<std::uint64_t> daemon_processes(const nlohmann::json& status) {
  std::vector<std::uint64_t> processes;
  if (const auto process = count_field(status, "pid")) processes.push_back(*process);
  for (const char* of_each : {"servers", "switch_daemons"}) {
    for (const nlohmann::json& daemon : items(status, of_each)) {
      if (const auto process = count_field(daemon, "pid")) processes.push_back(*process);
    }
  }
  return processes;
}

CoreWaits core_waits(const std::vector<std::uint64_t>& processes,
                     const std::filesystem::path& proc) {
  CoreWaits waits;
  for (const std::uint64_t process : processes) {
    std::error_code error;  // a process may end at any time
    std::filesystem::directory_iterator thread(proc / std::to_string(process) / "task", error);
    for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
      std::ifstream file(thread->path() / "schedstat");
      std::uint64_t ran = 0;
      std::uint64_t waited = 0;
      if (file >> ran >> waited) waits[thread->path().filename().string()] = waited;
    }
  }
  return waits;
}

double longest_core_wait(const CoreWaits& before, const CoreWaits& after) {
  std::uint64_t longest = 0;
  for (const auto& [thread, waited] : after) {
    const auto first = before.find(thread);
    if (first == before.end() || first->second > waited) continue;  // it began meanwhile
    longest = std::max(longest, waited - first->second);
  }
  return static_cast<double>(longest) * 1e-9;
}

}  // namespace gradcube::cli
