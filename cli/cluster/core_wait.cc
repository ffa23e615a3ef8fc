#include "cli/cluster/core_wait.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "cli/text/json_fields.h"

namespace gradcube::cli {
namespace {

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<std::uint64_t> daemon_processes(const nlohmann::json& status) {
  std::vector<std::uint64_t> processes;
  if (const auto process = count_field(status, "pid")) processes.push_back(*process);
  for (const nlohmann::json& server : items(status, "servers")) {
    if (const auto process = count_field(server, "pid")) processes.push_back(*process);
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
      const auto id = number_of(thread->path().filename().string());
      std::ifstream file(thread->path() / "schedstat");
      std::uint64_t ran = 0;
      std::uint64_t waited = 0;
      if (id && file >> ran >> waited) waits[*id] = waited;
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
