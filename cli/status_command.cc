#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/control_client.h"
#include "cli/interrupt.h"
#include "cli/status_text.h"
#include "control/base/errors.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;

struct StatusOptions {
  bool json = false;
  bool flows = false;
  double watch_seconds = 0;
};

void print_status(const RunDirectory& directory, const StatusOptions& options) {
  const nlohmann::json status = ask_status(directory);
  fmt::print("{}", options.json ? status.dump() + "\n" : status_text(status, options.flows));
  std::fflush(stdout);
}

void watch(const RunDirectory& directory, const StatusOptions& options) {
  const InterruptGuard interrupt;
  const auto period = std::chrono::duration<double>(options.watch_seconds);
  while (!InterruptGuard::interrupted()) {
    if (isatty(STDOUT_FILENO) == 1) fmt::print("\x1b[H\x1b[2J");
    print_status(directory, options);
    const auto next = std::chrono::steady_clock::now() + period;
    while (std::chrono::steady_clock::now() < next && !InterruptGuard::interrupted()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

int run_status(const StatusOptions& options) {
  const RunDirectory directory = RunDirectory::from_environment();
  if (options.watch_seconds > 0) {
    if (options.json) {
      throw control::UsageError("--watch and --json exclude each other: --json prints one object");
    }
    watch(directory, options);
  } else {
    print_status(directory, options);
  }
  return 0;
}

}  // namespace

void add_status(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "status", "Servers, ports, switches, jobs, flows, counters and memory of the cluster");
  auto options = std::make_shared<StatusOptions>();
  command->add_flag("--json", options->json, "One JSON object on standard output");
  command->add_flag("--flows", options->flows, "List the flows even when they are many");
  command
      ->add_option("--watch", options->watch_seconds, "Again every so many seconds, until Ctrl-C")
      ->check(CLI::Range(0.1, 3600.0));
  command->footer(
      "Examples:\n  gradcube status\n  gradcube status --json | jq .memory\n  gradcube status "
      "--watch 1");
  command->callback([options, &action] { action = [options] { return run_status(*options); }; });
}

}  // namespace gradcube::cli
