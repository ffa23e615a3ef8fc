// What the papers' models say.
#ifndef GRADCUBE_CLI_MODEL_COMMANDS_H_
#define GRADCUBE_CLI_MODEL_COMMANDS_H_

#include "cli/text/command.h"

namespace gradcube::cli {

void add_model(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_COMMANDS_H_
