// What starts trainers.
#ifndef GRADCUBE_CLI_LAUNCH_COMMANDS_H_
#define GRADCUBE_CLI_LAUNCH_COMMANDS_H_

#include <string>
#include <vector>

#include "cli/text/command.h"

namespace gradcube::cli {

// Of `run --grace`.
inline constexpr const char* kDefaultGrace = "5s";

// words: the command line behind "--", which is not the tool's to parse.
void add_run(CLI::App& tool, Action& action, const std::vector<std::string>& words);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_COMMANDS_H_
