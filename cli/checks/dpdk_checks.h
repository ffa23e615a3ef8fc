// The checks of `gradcube doctor` for DPDK: huge pages on each NUMA node, and, for NICs that the
// user names, the IOMMU, vfio-pci and the driver that each NIC has.
//
// Who names no NIC needs none of it: then huge pages are told of and nothing is warned of. What is
// wrong is a warning with the command that mends it, most often scripts/bringup.sh.
//
// Reads sysfs, and changes nothing. `root` is where it lies: "/" but in tests.
#ifndef GRADCUBE_CLI_CHECKS_DPDK_CHECKS_H_
#define GRADCUBE_CLI_CHECKS_DPDK_CHECKS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "cli/checks/host_checks.h"

namespace gradcube::cli {

// nics: PCI addresses, MACs or interfaces.
std::vector<HostCheck> check_dpdk_host(const std::vector<std::string>& nics,
                                       const std::filesystem::path& root = "/");

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CHECKS_DPDK_CHECKS_H_
