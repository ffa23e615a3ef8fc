#include <fmt/format.h>
#include <string>
#include <vector>

#include "cli/checks/host_checks.h"
#include "cli/cluster/settings_options.h"
#include "cli/text/command.h"
#include "cli/text/json_fields.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "control/settings/cluster_file.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

struct DoctorOptions {
  SettingsOptions settings;
  std::string cluster_file;
  bool json = false;
  std::vector<std::string> nics;
};

int run_doctor(const DoctorOptions& options) {
  control::ClusterSettings named;
  if (!options.cluster_file.empty()) named = control::read_cluster_file(options.cluster_file);
  options.settings.apply(named);
  control::validate(named);
  control::ClusterSettings settings;  // of the embedded cluster that is tried
  settings.topology = named.topology;
  const auto directory = control::RunDirectory::from_environment();
  std::vector<HostCheck> checks = check_daemon(settings, directory);
  for (auto& more :
       {check_hardware(settings), check_dpdk_host(options.nics), check_network(),
        std::vector{check_authentication(named)}, check_cluster(directory), check_python()}) {
    checks.insert(checks.end(), more.begin(), more.end());
  }
  if (options.json) {
    print("{}\n", json_text(checks_json(checks)));
  } else {
    print(
        "{}\nthis host {}\n", checks_text(checks),
        can_run(checks)
            ? fmt::format("can run a cluster: gradcube up --topology {}", settings.topology.spec())
            : fmt::format("cannot run a cluster of {}: mend the lines that begin with FAIL",
                          settings.topology.spec()));
  }
  return can_run(checks) ? 0 : kExitFailure;
}

}  // namespace

void add_doctor(CLI::App& tool, Action& action) {
  CLI::App* command =
      tool.add_subcommand("doctor", "Check what this host lacks for a cluster, and how to mend it");
  auto& options = options_of<DoctorOptions>(command, action, run_doctor);
  command->add_flag("--json", options.json, "Print one JSON object");
  add_text(command, "--nic", options.nics,
           "Also check what DPDK programs need for this NIC, named by its PCI address, its MAC or "
           "its interface: huge pages, IOMMU, vfio-pci. Can be repeated");
  add_text(command, "--cluster", options.cluster_file,
           "The cluster file (TOML), whose key is looked at; flags override it");
  options.settings.add(command, "topology");
  command->footer(
      "Starts a daemon with the embedded fabric, lets a trainer join at each server, and ends it.\n"
      "Exit code 0 means that `gradcube up` with this topology works, and its trainers can join.\n"
      "Examples:\n"
      "  gradcube doctor\n"
      "  gradcube doctor --topology star:2\n"
      "  gradcube doctor --cluster cluster.toml\n"
      "  gradcube doctor --nic 0000:3b:00.0 --nic 0000:3b:00.1\n"
      "  gradcube doctor --json | jq '.checks[] | select(.verdict != \"OK\")'");
}

}  // namespace gradcube::cli
