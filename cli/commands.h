// The commands of `gradcube`, one file each. Every add_...() adds its subcommand with flags, help
// and examples to the tool. Parsing only stores the action; it runs after the whole command line
// has been accepted.
//
// An action returns its exit code, 0 or 1, or throws: UsageError (2) or any other exception (1).
// `run` returns that of the processes that it started.
// It prints results to standard output (output.h), with --json one JSON object and nothing else;
// progress and errors go to standard error.
#ifndef GRADCUBE_CLI_COMMANDS_H_
#define GRADCUBE_CLI_COMMANDS_H_

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <vector>

namespace gradcube::cli {

using Action = std::function<int()>;

// Sets the action when the subcommand is parsed. The arguments must outlive the parsing.
void add_up(CLI::App& tool, Action& action);
void add_down(CLI::App& tool, Action& action);
void add_status(CLI::App& tool, Action& action);
void add_impair(CLI::App& tool, Action& action);
void add_plan(CLI::App& tool, Action& action);
void add_paths(CLI::App& tool, Action& action);
void add_check(CLI::App& tool, Action& action);
void add_perf(CLI::App& tool, Action& action);
void add_tune(CLI::App& tool, Action& action);
// words: the command line behind "--", which is not the tool's to parse.
void add_run(CLI::App& tool, Action& action, const std::vector<std::string>& words);
void add_model(CLI::App& tool, Action& action);
void add_checkpoint(CLI::App& tool, Action& action);
void add_doctor(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_COMMANDS_H_
