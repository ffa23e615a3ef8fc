// What changes a cluster: finds out what it is, starts it, ends it, damages its links; and what
// does so on one of its hosts for a command that was typed on another.
#ifndef GRADCUBE_CLI_UP_COMMANDS_H_
#define GRADCUBE_CLI_UP_COMMANDS_H_

#include "cli/text/command.h"

namespace gradcube::cli {

void add_up(CLI::App& tool, Action& action);
void add_down(CLI::App& tool, Action& action);
void add_setup(CLI::App& tool, Action& action);
void add_keygen(CLI::App& tool, Action& action);
void add_rekey(CLI::App& tool, Action& action);
void add_impair(CLI::App& tool, Action& action);
void add_at_host(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_UP_COMMANDS_H_
