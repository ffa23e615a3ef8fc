#include "cli/cluster/host_load.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/text/json_fields.h"

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

ThreadLoads thread_loads(const std::vector<std::uint64_t>& processes,
                         const std::filesystem::path& proc) {
  ThreadLoads loads;
  for (const std::uint64_t process : processes) {
    std::error_code error;  // a process may end at any time
    std::filesystem::directory_iterator thread(proc / std::to_string(process) / "task", error);
    for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
      std::ifstream file(thread->path() / "schedstat");
      ThreadLoad load;
      const bool has_times = static_cast<bool>(file >> load.ran_ns >> load.waited_ns);
      if (!has_times) load = {};
      const auto sleeps = number_after(thread->path() / "status", "voluntary_ctxt_switches:");
      if (!has_times && !sleeps) continue;
      load.sleeps = sleeps.value_or(0);
      loads[thread->path().filename().string()] = load;
    }
  }
  return loads;
}

double longest_core_wait(const ThreadLoads& before, const ThreadLoads& after) {
  std::uint64_t longest = 0;
  for (const auto& [thread, load] : after) {
    const auto first = before.find(thread);
    if (first == before.end() || first->second.waited_ns > load.waited_ns)
      continue;  // it began meanwhile
    longest = std::max(longest, load.waited_ns - first->second.waited_ns);
  }
  return static_cast<double>(longest) * 1e-9;
}

}  // namespace gradcube::cli
