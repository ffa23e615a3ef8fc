// The checks of `gradcube doctor`: whether `gradcube up` works on this host, and what would make it
// run better.
//
// Each check looks at one thing and leaves nothing behind. It returns a verdict, a message, and,
// where something is wrong, the command that mends it. `fail`: `gradcube up` does not work, or no
// job of all servers. `warn`: it runs more slowly, or something else (Python, huge pages, the test
// bed) does not work, or could not be looked at.
//
// What `up` and trainers are refused is known from themselves: a daemon is started, a trainer joins
// at each of its servers, and the daemon is ended. The limits that are told of beside it are the
// daemon's own.
#ifndef GRADCUBE_CLI_CHECKS_HOST_CHECKS_H_
#define GRADCUBE_CLI_CHECKS_HOST_CHECKS_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

enum class Verdict { ok, warn, fail };

struct HostCheck {
  std::string name;
  Verdict verdict;
  std::string finding;
  std::string remedy;  // a command, or a message with one; empty when nothing is to be done
};

inline HostCheck good(std::string name, std::string finding) {
  return {std::move(name), Verdict::ok, std::move(finding), ""};
}

// A daemon of a cluster with these settings, which is started for trainers and ended, unless one
// runs in the directory.
std::vector<HostCheck> check_daemon(const control::ClusterSettings& settings,
                                    const control::RunDirectory& directory);

// Cores, vector instructions, memory, the limits of processes. Huge pages and NICs are below.
std::vector<HostCheck> check_hardware(const control::ClusterSettings& settings);

// Huge pages on each NUMA node, and for NICs that the user names, by PCI address, MAC or interface,
// the IOMMU, vfio-pci and the driver that each has. Who names no NIC needs none of it: then huge
// pages are told of and nothing is warned of. root: where sysfs lies, "/" but in tests.
std::vector<HostCheck> check_dpdk_host(const std::vector<std::string>& nics,
                                       const std::filesystem::path& root = "/");

// Packet sockets, for a daemon on this host's interfaces; and what the test bed of `up --fabric
// veth` is made of, in a network namespace that is gone afterwards.
std::vector<HostCheck> check_network();

// Whether frames between daemons with these settings are authenticated, and the key is fit for it.
HostCheck check_authentication(const control::ClusterSettings& settings);

// The run directory and the cluster in it.
std::vector<HostCheck> check_cluster(const control::RunDirectory& directory);

// Why programs that start others, as some checks do, do not run here; empty if they do.
std::string why_no_programs();

// NumPy and PyTorch, for Python trainers.
std::vector<HostCheck> check_python();

// Whether nothing failed.
bool can_run(const std::vector<HostCheck>& checks);

std::string checks_text(const std::vector<HostCheck>& checks);
nlohmann::json checks_json(const std::vector<HostCheck>& checks);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CHECKS_HOST_CHECKS_H_
