// What the papers' models say. They are a program in Python, which the tool becomes; but `model
// fit`, which measures the running cluster, is here.
#ifndef GRADCUBE_CLI_MODEL_COMMANDS_H_
#define GRADCUBE_CLI_MODEL_COMMANDS_H_

#include <string>
#include <vector>

#include "cli/text/command.h"

namespace gradcube::cli {

// For the models: prints what `model fit` has kept as {"alpha": seconds, "beta": seconds per byte}.
inline constexpr const char* kKeptCommand = "kept";

// `model fit`, and `model kept`, which no help lists.
void add_model(CLI::App& tool, Action& action);

// Whether the command line is one of the models: `gradcube model WORDS`, but neither of
// add_model()'s. Flags that stand before `model` come first in `words`: the models refuse them.
bool read_model_words(int argc, const char* const* argv, std::vector<std::string>& words);

// `quickstart`, which is a program in Python, too.
void add_quickstart(CLI::App& tool, Action& action);

// Of the models.
inline constexpr const char* kModelsModule = "gradcube.model.commands";

// Becomes `python3`, where main() of this module of the package that belongs to this tool
// (package_file.h) gets the words. It finds the tool by $GRADCUBE_TOOL. Throws a SetupError where
// python3 or the package is missing.
[[noreturn]] void become_python(const char* module, const std::vector<std::string>& words);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_COMMANDS_H_
