// The commands of `gradcube`, one file each. Every add_...() adds its subcommand with flags, help
// and examples to the tool; parsing chooses what is to be done, and nothing is done before all of
// the command line has been understood.
//
// A command returns its exit code, 0 or 1, or throws: UsageError (2) or any other exception (1).
// Facts go to standard output, with --json one JSON object and nothing else; diagnostics and
// progress go to standard error.
#ifndef GRADCUBE_CLI_COMMANDS_H_
#define GRADCUBE_CLI_COMMANDS_H_

#include <CLI/App.hpp>
#include <functional>

namespace gradcube::cli {

using Action = std::function<int()>;

// The action is set when its subcommand is parsed. Both must outlive the parsing.
void add_up(CLI::App& tool, Action& action);
void add_down(CLI::App& tool, Action& action);
void add_status(CLI::App& tool, Action& action);
void add_impair(CLI::App& tool, Action& action);
void add_plan(CLI::App& tool, Action& action);
void add_perf(CLI::App& tool, Action& action);
void add_doctor(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_COMMANDS_H_
