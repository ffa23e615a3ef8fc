// How long the threads of processes were ready to run and had no core, as the kernel counts it
// (/proc/PID/task/TID/schedstat, the second number). Where pollers wait for cores, links seem slow.
//
// What cannot be read counts as nothing: a process that is gone, a kernel that does not count.
#ifndef GRADCUBE_CLI_CLUSTER_CORE_WAIT_H_
#define GRADCUBE_CLI_CLUSTER_CORE_WAIT_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gradcube::cli {

// The daemons of this host, those of switches included, as a status names them.
std::vector<std::uint64_t> daemon_processes(const nlohmann::json& status);

// By the thread's number as the kernel writes it, in nanoseconds since it began.
using CoreWaits = std::map<std::string, std::uint64_t>;
CoreWaits core_waits(const std::vector<std::uint64_t>& processes,
                     const std::filesystem::path& proc = "/proc");

// In seconds, of the thread that waited the longest between the two readings.
double longest_core_wait(const CoreWaits& before, const CoreWaits& after);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_CORE_WAIT_H_
