// What a command of `gradcube` is, and which there are. Each has a file in one of the rooms, with
// its add_...(): it adds the subcommand with flags, help and examples to the tool. Parsing only
// stores the action, and add_...()'s arguments must outlive it; the action runs after the whole
// command line has been accepted.
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
#include <memory>
#include <string>
#include <vector>

namespace gradcube::cli {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Returns its exit code, 0 or kExitFailure, or throws: UsageError (kExitUsage) or any other
// exception (kExitFailure). `run` returns that of the processes that it started.
using Action = std::function<int()>;

// A command's options, as long as the command is there. run(options) becomes its action.
template <typename Options, typename Run>
Options& options_of(CLI::App* command, Action& action, Run run) {
  const auto options = std::make_shared<Options>();
  command->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
  return *options;
}

// cli/up: what changes a cluster, and what does so on one of its hosts for a command that was typed
// on another.
void add_up(CLI::App& tool, Action& action);
void add_down(CLI::App& tool, Action& action);
void add_setup(CLI::App& tool, Action& action);
void add_keygen(CLI::App& tool, Action& action);
void add_rekey(CLI::App& tool, Action& action);
void add_impair(CLI::App& tool, Action& action);
void add_at_host(CLI::App& tool, Action& action);

// cli/status: what shows a cluster as it is, and a checkpoint of one.
void add_status(CLI::App& tool, Action& action);
void add_checkpoint(CLI::App& tool, Action& action);

// cli/plan: which way gradients and messages take.
void add_plan(CLI::App& tool, Action& action);
void add_paths(CLI::App& tool, Action& action);

// cli/checks: what finds faults, of a cluster's links and of a host.
void add_check(CLI::App& tool, Action& action);
void add_doctor(CLI::App& tool, Action& action);

// cli/perf: what measures a cluster.
void add_perf(CLI::App& tool, Action& action);

// cli/launch: what starts trainers. words: the command line behind "--", which is not the tool's to
// parse.
void add_run(CLI::App& tool, Action& action, const std::vector<std::string>& words);
inline constexpr const char* kDefaultGrace = "5s";  // of `run --grace`

// cli/model: `model fit`, and `quickstart`.
void add_model(CLI::App& tool, Action& action);
void add_quickstart(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_COMMAND_H_
