// Starts a process: in a group of its own, with /dev/null or a pipe for its input and pipes for
// its output.
//
// The kernel kills the process (SIGKILL) when the thread that started it ends, however it ends,
// and the guard, which knows its group before the command runs, does so with that; but one that has
// an input is left to see it close. It begins with the signals, and the limit of descriptors, that
// the tool was started with; but SIGCHLD is not ignored.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_PROCESS_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_PROCESS_H_

#include <optional>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include "cli/launch/launch_guard.h"
#include "cli/launch/launch_signals.h"
#include "control/base/descriptor.h"

namespace gradcube::cli {

// There is no such command (127), or it is none that can be run (126): a shell's exit codes.
class CommandError : public std::runtime_error {
 public:
  CommandError(int exit_code, const std::string& what)
      : std::runtime_error(what), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The file that a word stands for, looked for in `search` ($PATH; may be null) if it has no '/'.
// Throws CommandError.
std::string find_command(const std::string& word, const char* search);

struct LaunchTask {
  std::string mark{};              // in front of its lines (launch_text.h)
  std::string file{};              // as find_command() has found it
  std::vector<std::string> words;  // argv
  std::vector<std::string> environment;
  // Its standard input begins with this, and stays open: it closes where others get SIGTERM.
  // Nothing: /dev/null.
  std::optional<std::string> input = std::nullopt;
};

struct LaunchedProcess {
  pid_t pid = -1;  // and its group's number
  control::Descriptor input;
  control::Descriptor output;
  control::Descriptor errors;
};

// descriptors: the limit that it is to have. Throws SetupError.
LaunchedProcess launch_process(const LaunchTask& task, const rlimit& descriptors,
                               const LaunchSignals& signals, const LaunchGuard& guard);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_PROCESS_H_
