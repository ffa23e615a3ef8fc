#include <string>

#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "control/settings/cluster_key.h"

namespace gradcube::cli {

namespace {

int run_keygen(const std::string& path) {
  control::write_key_file(path, control::key_text(control::draw_secret()));
  print("{}\n", path);
  return 0;
}

}  // namespace

void add_keygen(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "keygen", "Make the key by which the daemons of a cluster know each other's frames");
  auto& path = options_of<std::string>(command, action, run_keygen);
  add_text(command, "file", path, "The file, which must not be there yet")->required();
  command->footer(
      "Only who owns the file can read it. Copy it to every host, to root or to the daemon's\n"
      "user, and name it in the cluster file: [security] key-file = \"...\". `gradcube up` makes\n"
      "one by itself where none is named.\n"
      "Example:\n"
      "  gradcube keygen /etc/gradcube/cube.key");
}

}  // namespace gradcube::cli
