// Which way gradients and messages take.
#ifndef GRADCUBE_CLI_PLAN_COMMANDS_H_
#define GRADCUBE_CLI_PLAN_COMMANDS_H_

#include "cli/text/command.h"

namespace gradcube::cli {

void add_plan(CLI::App& tool, Action& action);
void add_paths(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_COMMANDS_H_
