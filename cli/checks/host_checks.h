// The checks of `gradcube doctor`: whether this host can run the embedded fabric, and what would
// make it run better.
//
// Each check looks at one thing and changes nothing. It returns a verdict, a message, and, where
// something is wrong, the command that mends it. `fail`: the embedded fabric cannot run. `warn`: it
// runs more slowly, or something else (huge pages, the test bed, Python trainers) does not work.
#ifndef GRADCUBE_CLI_CHECKS_HOST_CHECKS_H_
#define GRADCUBE_CLI_CHECKS_HOST_CHECKS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "control/settings/run_directory.h"

namespace gradcube::cli {

enum class Verdict { ok, warn, fail };

struct HostCheck {
  std::string name;
  Verdict verdict;
  std::string finding;
  std::string remedy;  // a command, or a message with one; empty when nothing is to be done
};

std::string_view verdict_text(Verdict verdict);  // "OK", "WARN", "FAIL"

// DPDK's libraries and the daemon.
std::vector<HostCheck> check_programs();

// Cores, vector instructions, memory, memfd, memlock. Huge pages and NICs: dpdk_checks.h.
std::vector<HostCheck> check_hardware();

// Packet sockets, for a daemon on this host's interfaces; and what the test bed of `up --fabric
// veth` is made of, in a network namespace that is gone afterwards.
std::vector<HostCheck> check_network();

// The run directory and the cluster in it.
std::vector<HostCheck> check_cluster(const control::RunDirectory& directory);

// NumPy and PyTorch, for Python trainers.
std::vector<HostCheck> check_python();

// Whether nothing failed.
bool can_run(const std::vector<HostCheck>& checks);

std::string checks_text(const std::vector<HostCheck>& checks);
nlohmann::json checks_json(const std::vector<HostCheck>& checks);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CHECKS_HOST_CHECKS_H_
