// What shows a cluster as it is, and a checkpoint of one.
#ifndef GRADCUBE_CLI_STATUS_COMMANDS_H_
#define GRADCUBE_CLI_STATUS_COMMANDS_H_

#include "cli/text/command.h"

namespace gradcube::cli {

void add_status(CLI::App& tool, Action& action);
void add_checkpoint(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_COMMANDS_H_
