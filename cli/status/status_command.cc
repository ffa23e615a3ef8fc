#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/control_client.h"
#include "cli/cluster/interrupt.h"
#include "cli/status/status_text.h"
#include "cli/text/command.h"
#include "cli/text/json_fields.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "control/base/errors.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;

constexpr double kShortestPeriod = 0.1;  // seconds
constexpr double kLongestPeriod = 3600;
constexpr auto kInterruptPause = std::chrono::milliseconds(50);
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

struct StatusOptions {
  bool json = false;
  bool flows = false;
  bool all = false;
  double watch_seconds = 0;
};

// As `up` was given them, into each server's "host".
void name_hosts(const RunDirectory& directory, nlohmann::json& status) {
  const auto hosts = kept_cluster_hosts(directory);
  if (!hosts || !status.contains("servers")) return;
  const control::AddressSpace& space = hosts->settings.topology.space();
  for (const std::size_t host : hosts->all()) {
    const nlohmann::json address(control::address_json(space, hosts->server(host)));
    for (nlohmann::json& server : status["servers"]) {
      if (field(server, "address") == address) server["host"] = hosts->names[host];
    }
  }
}

nlohmann::json ask(const RunDirectory& directory, const StatusOptions& options) {
  nlohmann::json status = options.all ? ask_status_of_all(directory) : ask_status(directory);
  const bool are_left_out =
      items(status, "flows").size() < count_field(status, "flow_count").value_or(0);
  if ((options.flows || options.json) && !options.all && are_left_out) {
    const nlohmann::json flows = ask_flows(directory, {});
    for (const char* key : {"flow_count", "flows"}) status[key] = field(flows, key);
  }
  name_hosts(directory, status);
  return status;
}

void watch(const RunDirectory& directory, const StatusOptions& options) {
  const InterruptGuard interrupt;
  const auto period = std::chrono::duration<double>(options.watch_seconds);
  StatusView view{.all_flows = options.flows, .rates = true, .before = nullptr};
  while (!InterruptGuard::interrupted()) {
    const auto next = std::chrono::steady_clock::now() + period;
    nlohmann::json status = ask(directory, options);
    if (isatty(STDOUT_FILENO) == 1) write_output(kClearScreen);
    write_output(status_text(status, view));
    flush_output();
    view.before = std::move(status);
    while (std::chrono::steady_clock::now() < next && !InterruptGuard::interrupted()) {
      std::this_thread::sleep_for(kInterruptPause);
    }
  }
}

int run_status(StatusOptions options) {
  const RunDirectory directory = RunDirectory::from_environment();
  if (hosts_to_ask(directory)) options.all = true;
  if (options.watch_seconds > 0) {
    if (options.json) {
      throw control::UsageError("--watch and --json exclude each other: --json prints one object");
    }
    watch(directory, options);
    return 0;
  }
  const nlohmann::json status = ask(directory, options);
  write_output(options.json ? status.dump() + "\n"
                            : status_text(status, {.all_flows = options.flows}));
  return 0;
}

}  // namespace

void add_status(CLI::App& tool, Action& action) {
  CLI::App* command =
      tool.add_subcommand("status", "Show servers, ports, switches, jobs, trainers and counters");
  auto& options = options_of<StatusOptions>(command, action, run_status);
  command->add_flag("--json", options.json, "Print one JSON object");
  command->add_flag("--flows", options.flows, "List the flows even when there are many");
  command->add_flag("--all", options.all,
                    "Show all servers of a cluster whose daemons are on separate hosts, as it does "
                    "where `up` has started them: this host's daemon asks the others, 2 s each at "
                    "most");
  command
      ->add_option("--watch", options.watch_seconds,
                   "Print again every so many seconds until Ctrl-C, with each port's rates")
      ->transform(seconds_in(kShortestPeriod, kLongestPeriod));
  command->footer(
      "The trainers' table shows what each trainer has submitted and completed, and for whom a\n"
      "job waits.\n"
      "Examples:\n"
      "  gradcube status                          once\n"
      "  gradcube status --watch 1                every second, with packets/s and bit/s per port\n"
      "  gradcube status --all                    also the servers on other hosts\n"
      "  gradcube status --json | jq .memory      for programs");
}

}  // namespace gradcube::cli
