#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/cluster/control_client.h"
#include "cli/text/output.h"
#include "cli/up/commands.h"
#include "control/base/errors.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::DaemonLock;
using control::RunDirectory;
using control::SetupError;

constexpr auto kEndPatience = std::chrono::seconds(10);
constexpr auto kDownPause = std::chrono::milliseconds(20);

// The advice for a daemon that does not end by itself.
std::string kill_message(pid_t pid) {
  return pid > 0
             ? fmt::format("end it with `kill {0}`, or `kill -9 {0}` if that does not help", pid)
             : "its pid is not known: `pgrep gradcubed` lists the daemons";
}

void remove_leftovers(const RunDirectory& directory) {
  if (!directory.exists()) return;
  directory.check();
  if (const auto lock = DaemonLock::acquire(directory)) directory.remove_stale_sockets(*lock);
}

// Whether this daemon still holds the run directory. Another `up` may have begun a new one there.
bool lives(const RunDirectory& directory, pid_t pid) {
  const auto daemon = directory.living_daemon();
  return daemon && (daemon->pid == pid || daemon->pid == 0);
}

bool ends_within(const RunDirectory& directory, pid_t pid, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (lives(directory, pid)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kDownPause);
  }
  return true;
}

void ask_to_end(const RunDirectory& directory, pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + kEndPatience;
  const auto left = [deadline] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline -
                                                                 std::chrono::steady_clock::now());
  };
  for (;;) {
    try {
      ask_daemon(directory, {{"command", "down"}}, std::max(left(), kDownPause));
      return;
    } catch (const SetupError& error) {
      // One that is starting does not listen yet. One that has ended in the meantime, or is about
      // to, does what it was asked.
      if (!lives(directory, pid)) return;
      if (left().count() <= 0) {
        throw SetupError(fmt::format("{}; {}", error.what(), kill_message(pid)));
      }
    }
    std::this_thread::sleep_for(kDownPause);
  }
}

int run_down(bool json) {
  const RunDirectory directory = RunDirectory::from_environment();
  const auto daemon = directory.living_daemon();
  if (!daemon) {
    remove_leftovers(directory);
    throw SetupError(
        fmt::format("no cluster runs in {}: there is nothing to end", directory.path().string()));
  }
  ask_to_end(directory, daemon->pid);
  if (!ends_within(directory, daemon->pid, kEndPatience)) {
    throw SetupError(fmt::format("the daemon (pid {}) has not ended after {} s; {}", daemon->pid,
                                 kEndPatience.count(), kill_message(daemon->pid)));
  }
  remove_leftovers(directory);
  if (json) {
    print("{}\n", nlohmann::json{{"ok", true}, {"pid", daemon->pid}}.dump());
  } else {
    print("the cluster in {} is down\n", directory.path().string());
  }
  return 0;
}

}  // namespace

void add_down(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand("down", "End the cluster");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->footer(
      "Trainers that still run get GRADCUBE_ENODAEMON.\n"
      "Example:\n"
      "  gradcube down");
  command->callback([json, &action] { action = [json] { return run_down(*json); }; });
}

}  // namespace gradcube::cli
