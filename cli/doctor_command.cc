#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/host_checks.h"
#include "cli/output.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

int run_doctor(bool json) {
  const auto directory = control::RunDirectory::from_environment();
  std::vector<HostCheck> checks = check_programs();
  for (auto& more : {check_hardware(), check_network(), check_cluster(directory), check_python()}) {
    checks.insert(checks.end(), more.begin(), more.end());
  }
  if (json) {
    print("{}\n", checks_json(checks).dump());
  } else {
    print("{}\n{}\n", checks_text(checks),
          can_run(checks)
              ? "this host can run the embedded fabric: gradcube up --topology bcube:3,2"
              : "this host cannot run the embedded fabric: mend the lines that begin with FAIL");
  }
  return can_run(checks) ? 0 : kExitFailure;
}

}  // namespace

void add_doctor(CLI::App& tool, Action& action) {
  CLI::App* command =
      tool.add_subcommand("doctor", "Check what this host lacks for a cluster, and how to mend it");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->footer(
      "Exit code 0 means that the embedded fabric can run.\n"
      "Examples:\n"
      "  gradcube doctor\n"
      "  gradcube doctor --json | jq '.checks[] | select(.verdict != \"OK\")'");
  command->callback([json, &action] { action = [json] { return run_doctor(*json); }; });
}

}  // namespace gradcube::cli
