#include "cli/text/package_file.h"

#include <fmt/format.h>
#include <system_error>

#include "control/base/errors.h"

namespace gradcube::cli {

std::filesystem::path own_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

std::filesystem::path package_file(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = own_program().parent_path();
  fs::path folder;
  // Seen from this executable (cli/meson.build).
  for (const char* const way : {GRADCUBE_PACKAGES_OF_SOURCE_TREE, GRADCUBE_PACKAGES_INSTALLED}) {
    folder = (here / way).lexically_normal();
    if (fs::exists(folder / "gradcube" / "model", error)) return folder / name;
  }
  throw control::SetupError(
      fmt::format("the Python package gradcube, which belongs to this tool, is not in {}; install "
                  "both by `meson install`",
                  folder.string()));
}

}  // namespace gradcube::cli
