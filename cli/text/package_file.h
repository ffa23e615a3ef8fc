// Files of the Python package `gradcube`: it is installed with this tool, and in a build tree it is
// that of the source tree.
#ifndef GRADCUBE_CLI_TEXT_PACKAGE_FILE_H_
#define GRADCUBE_CLI_TEXT_PACKAGE_FILE_H_

#include <filesystem>
#include <string_view>

namespace gradcube::cli {

// This program's file; empty where /proc is not mounted.
std::filesystem::path own_program();

// Where "gradcube/model/networks/lenet5.json" lies, or, for an empty name, the folder that Python
// has to look in for the package. Throws a SetupError where the package is missing.
std::filesystem::path package_file(std::string_view name);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_PACKAGE_FILE_H_
