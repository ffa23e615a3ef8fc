// What measures a cluster.
#ifndef GRADCUBE_CLI_PERF_COMMANDS_H_
#define GRADCUBE_CLI_PERF_COMMANDS_H_

#include "cli/text/command.h"

namespace gradcube::cli {

void add_perf(CLI::App& tool, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_COMMANDS_H_
