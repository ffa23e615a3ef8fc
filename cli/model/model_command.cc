#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

#include "cli/model/commands.h"
#include "cli/text/package_file.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

// The distribution's, as Matplotlib is the distribution's package.
constexpr const char* kPython = "/usr/bin/python3";

// -I keeps out what lies in the working directory or in the user's variables; -B writes no files
// beside the package.
constexpr const char* kStart =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from gradcube.model.commands import main; sys.exit(main())";

}  // namespace

bool read_model_words(int argc, const char* const* argv, std::vector<std::string>& words) {
  const char* const* const end = argv + argc;
  const char* const* const first =
      std::find_if(argv + 1, end, [](std::string_view word) { return !word.starts_with('-'); });
  if (first == end || *first != std::string_view("model")) return false;
  for (const std::string_view own : {"fit", kKeptCommand}) {
    if (first + 1 != end && first[1] == own) return false;
  }
  words.assign(argv + 1, first);
  words.insert(words.end(), first + 1, end);
  return true;
}

void become_models(const std::vector<std::string>& words) {
  const std::string packages = package_file("").string();
  std::error_code error;
  setenv("GRADCUBE_TOOL", std::filesystem::read_symlink("/proc/self/exe", error).c_str(), 1);
  std::vector<const char*> arguments = {kPython, "-I", "-B", "-c", kStart, packages.c_str()};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  execv(kPython, const_cast<char* const*>(arguments.data()));
  throw control::SetupError(
      fmt::format("the models are a program in Python, and {} cannot be started: {}; install "
                  "python3",
                  kPython, std::strerror(errno)));
}

}  // namespace gradcube::cli
