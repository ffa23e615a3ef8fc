#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

#include "cli/model/python.h"
#include "cli/text/command.h"
#include "cli/text/package_file.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

// The distribution's, as Matplotlib is the distribution's package.
constexpr const char* kPython = "/usr/bin/python3";

// Calls main() of the module that is named. -I keeps out what lies in the working directory or in
// the user's variables; -B writes no files beside the package.
constexpr const char* kStart =
    "import importlib, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "sys.exit(importlib.import_module(sys.argv.pop(1)).main())";

}  // namespace

bool read_model_words(int argc, const char* const* argv, std::vector<std::string>& words) {
  const char* const* const end = argv + argc;
  const char* const* const first =
      std::find_if(argv + 1, end, [](std::string_view word) { return !word.starts_with('-'); });
  if (first == end || *first != std::string_view("model")) return false;
  if (first + 1 != end && first[1] == std::string_view("fit")) return false;
  words.assign(argv + 1, first);
  words.insert(words.end(), first + 1, end);
  return true;
}

void become_python(const char* module, const std::vector<std::string>& words) {
  const std::string packages = package_file("").string();
  setenv("GRADCUBE_TOOL", own_program().c_str(), 1);
  std::vector<const char*> arguments = {kPython,          "-I",  "-B", "-c", kStart,
                                        packages.c_str(), module};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  execv(kPython, const_cast<char* const*>(arguments.data()));
  throw control::SetupError(
      fmt::format("this command is a program in Python, and {} cannot be started: {}; install "
                  "python3",
                  kPython, std::strerror(errno)));
}

void add_quickstart(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "quickstart", "See it work: a cluster on this host, all-reduces, training, and nothing left");
  command->allow_extras();
  command->footer(
      "Takes the options of `up`. Trains with NumPy; it needs the Python package that belongs to\n"
      "this tool.\n"
      "Examples:\n"
      "  gradcube quickstart\n"
      "  gradcube quickstart --rate 1gbit --mtu 9000 --loss 0.001");
  command->callback([command, &action] {
    action = [words = command->remaining()]() -> int {
      become_python("gradcube.quickstart", words);
    };
  });
}

}  // namespace gradcube::cli
