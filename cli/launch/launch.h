// Runs the processes of `gradcube run`: starts them, passes on what they write, and ends all of
// them when one fails (launch_stages.h) or a signal comes.
//
// However this process ends, the groups of its processes end with it (launch_guard.h). What has
// made itself a session of its own is left alone. Orphans become this process's children, so that
// their groups' ends are seen. One thread. Errors are control::SetupError; then all are ended.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/launch_process.h"
#include "cli/launch/launch_signals.h"
#include "cli/launch/launch_stages.h"

namespace gradcube::cli {

// One process.
struct LaunchTask {
  std::string mark;  // in front of its lines (launch_lines.h)
  std::vector<std::string> environment;
};

struct LaunchSettings {
  std::string file;                // of the command
  std::vector<std::string> words;  // argv
  std::vector<LaunchTask> tasks;
  std::chrono::nanoseconds grace{};
  bool output_to_errors = false;  // standard output is for something else
};

struct LaunchReport {
  std::vector<ProcessEnd> ends;              // by task
  std::vector<std::size_t> killed;           // tasks that did not heed SIGTERM in time
  std::optional<std::size_t> first_failure;  // a task
  int exit_code = 0;                         // of that one
  int interrupted_by = 0;                    // a signal
  int output_error = 0;                      // errno: standard output cannot be written
};

// Returns when all have ended and what they wrote has been passed on.
LaunchReport launch(const LaunchSettings& settings, const LaunchSignals& signals);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_H_
