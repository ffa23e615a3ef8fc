// What this host's kernel tells of memory and cores. What cannot be read counts as nothing: a
// process that is gone, a kernel that does not count.
#ifndef GRADCUBE_CLI_CLUSTER_HOST_LOAD_H_
#define GRADCUBE_CLI_CLUSTER_HOST_LOAD_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace gradcube::cli {

// Bytes: the tighter of the machine's and the control group's. Empty where neither can be read.
std::optional<std::uint64_t> available_memory();

// The number behind the word `key` in a file of the kernel's; its first word where the key is
// empty.
std::optional<std::uint64_t> number_after(const std::filesystem::path& file,
                                          const std::string& key);

// The daemons of this host, those of switches included, as a status names them.
std::vector<std::uint64_t> daemon_processes(const nlohmann::json& status);

// What the kernel counts of a thread since it began (/proc/PID/task/TID).
struct ThreadLoad {
  std::uint64_t ran_ns = 0;     // on cores
  std::uint64_t waited_ns = 0;  // ready to run, without a core: where pollers do, links seem slow
  std::uint64_t sleeps = 0;     // voluntary context switches
};

// By the thread's number as the kernel writes it.
using ThreadLoads = std::map<std::string, ThreadLoad>;
ThreadLoads thread_loads(const std::vector<std::uint64_t>& processes,
                         const std::filesystem::path& proc = "/proc");

// In seconds, of the thread that waited the longest between the two readings.
double longest_core_wait(const ThreadLoads& before, const ThreadLoads& after);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_HOST_LOAD_H_
