// What a command of `gradcube` is. Each room's commands.h has the add_...() of its commands, one
// file each: it adds the subcommand with flags, help and examples to the tool. Parsing only stores
// the action, and add_...()'s arguments must outlive it; the action runs after the whole command
// line has been accepted.
//
// It prints results to standard output (output.h), with --json one JSON object and nothing else;
// progress and errors go to standard error.
//
// CLI11 is here whole: its App.hpp alone lacks what its functions use.
#ifndef GRADCUBE_CLI_TEXT_COMMAND_H_
#define GRADCUBE_CLI_TEXT_COMMAND_H_

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>

namespace gradcube::cli {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Returns its exit code, 0 or kExitFailure, or throws: UsageError (kExitUsage) or any other
// exception (kExitFailure). `run` returns that of the processes that it started.
using Action = std::function<int()>;

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_COMMAND_H_
