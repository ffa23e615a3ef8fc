// What finds faults: of a cluster's links, of a host.
#ifndef GRADCUBE_CLI_CHECKS_COMMANDS_H_
#define GRADCUBE_CLI_CHECKS_COMMANDS_H_

#include "cli/text/command.h"

namespace gradcube::cli {

void add_check(CLI::App& tool, Action& action);
void add_doctor(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CHECKS_COMMANDS_H_
