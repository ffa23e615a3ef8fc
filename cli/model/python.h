// Commands that are programs in Python, which the tool becomes: what the papers' models say, and
// `quickstart`. `model fit`, which measures the running cluster, is here.
#ifndef GRADCUBE_CLI_MODEL_PYTHON_H_
#define GRADCUBE_CLI_MODEL_PYTHON_H_

#include <string>
#include <vector>

namespace gradcube::cli {

// Whether the command line is one of the models: `gradcube model WORDS`, but not
// `model fit`. Flags that stand before `model` come first in `words`: the models refuse them.
bool read_model_words(int argc, const char* const* argv, std::vector<std::string>& words);

// Of the models.
inline constexpr const char* kModelsModule = "gradcube.model.commands";

// Becomes `python3`, where main() of this module of the package that belongs to this tool
// (package_file.h) gets the words. It finds the tool by $GRADCUBE_TOOL. Throws a SetupError where
// python3 or the package is missing.
[[noreturn]] void become_python(const char* module, const std::vector<std::string>& words);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_PYTHON_H_
