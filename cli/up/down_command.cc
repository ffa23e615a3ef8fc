#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/control_client.h"
#include "cli/text/command.h"
#include "cli/text/output.h"
#include "cli/up/on_hosts.h"
#include "cli/up/own_daemon.h"
#include "control/base/errors.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;

int run_down_on_hosts(const ClusterHosts& hosts, const RunDirectory& directory, bool json) {
  down_on_hosts(hosts, directory);
  if (json) {
    print("{}\n", nlohmann::json{{"ok", true}, {"hosts", hosts.names}}.dump());
  } else {
    print("the cluster on {} hosts is down\n", hosts.names.size());
  }
  return 0;
}

int run_down(bool json) {
  const RunDirectory directory = RunDirectory::from_environment();
  if (const auto hosts = hosts_to_ask(directory)) return run_down_on_hosts(*hosts, directory, json);
  const bool left = has_leftovers(directory);
  const auto pid = end_daemon(directory);
  if (!pid && !left) {
    throw SetupError(
        fmt::format("no cluster runs in {}: {}", directory.path().string(), kNothingToEnd));
  }
  if (!pid && has_leftovers(directory)) {
    throw SetupError(
        fmt::format("a cluster is being started in {}: wait until it is up, then end it",
                    directory.path().string()));
  }
  if (json) {
    print("{}\n", nlohmann::json{{"ok", true}, {"pid", pid.value_or(0)}}.dump());
  } else if (pid) {
    print("the cluster in {} is down\n", directory.path().string());
  } else {
    print("the daemon in {} had ended; what it left is removed, but for its log {}\n",
          directory.path().string(), directory.log_file().string());
  }
  return 0;
}

}  // namespace

void add_down(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand("down", "End the cluster");
  auto& json = options_of<bool>(command, action, run_down);
  command->add_flag("--json", json, "Print one JSON object");
  command->footer(
      "Trainers that still run get GRADCUBE_ENODAEMON. A cluster that `up` has started on several\n"
      "hosts ends on all of them, from any of them. Of a daemon that was killed it removes what\n"
      "is left; the pid of --json is 0 then.\n"
      "Examples:\n"
      "  gradcube down\n"
      "  GRADCUBE_THIS_HOST=1 gradcube down     of several hosts, this one alone");
}

}  // namespace gradcube::cli
