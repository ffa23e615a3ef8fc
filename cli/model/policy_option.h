// `--policy` of the commands that say when gradients travel.
#ifndef GRADCUBE_CLI_MODEL_POLICY_OPTION_H_
#define GRADCUBE_CLI_MODEL_POLICY_OPTION_H_

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "control/merge/policies.h"

namespace gradcube::cli {

void add_policy_option(CLI::App* command, std::string& policy);

// Those that are asked for: `all`, or the name of one. Throws a UsageError for another text.
std::vector<control::merge::Policy> policies_of(const std::string& asked);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_POLICY_OPTION_H_
