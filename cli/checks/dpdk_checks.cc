#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <regex>
#include <string_view>
#include <system_error>

#include "cli/checks/host_checks.h"
#include "cli/cluster/host_load.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReserve = "sudo ./scripts/bringup.sh --huge-pages 1G";

bool is_pci_address(const std::string& text) {
  static const std::regex form("[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  return std::regex_match(text, form);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// "512 of 2048kB, 1 of 1048576kB"; empty where there are none.
std::string pages_in(const fs::path& folder) {
  std::vector<std::string> found;
  for (const fs::path& size : entries_of(folder)) {
    const auto pages = number_after(size / "nr_hugepages", "");
    if (!pages || *pages == 0) continue;
    const std::string name = size.filename().string();  // hugepages-2048kB
    found.push_back(fmt::format("{} of {}", *pages, name.substr(name.find('-') + 1)));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

HostCheck check_huge_pages(bool needed, const fs::path& root) {
  std::map<std::uint64_t, std::string> nodes;
  for (const fs::path& node : entries_of(root / "sys/devices/system/node")) {
    const std::string name = node.filename().string();
    if (!std::regex_match(name, std::regex("node[0-9]{1,4}"))) continue;
    if (fs::is_directory(node / "hugepages")) {
      nodes[std::stoull(name.substr(4))] = pages_in(node / "hugepages");
    }
  }
  // Kernels without NUMA have one folder for the host.
  if (nodes.empty()) nodes[0] = pages_in(root / "sys/kernel/mm/hugepages");
  const auto has_none = [](const auto& node) { return node.second.empty(); };
  const bool none = std::all_of(nodes.begin(), nodes.end(), has_none);
  if (none && !needed) {
    return good("huge pages",
                fmt::format("none reserved: no fabric needs them; for more speed: {}", kReserve));
  }
  std::vector<std::string> found;
  for (const auto& [node, pages] : nodes) {
    found.push_back(fmt::format("{} on node {}", pages.empty() ? "none" : pages, node));
  }
  const bool lacking = needed && std::any_of(nodes.begin(), nodes.end(), has_none);
  return {"huge pages", lacking ? Verdict::warn : Verdict::ok,
          fmt::format("{}", fmt::join(found, "; ")), lacking ? std::string(kReserve) : ""};
}

// The PCI device that an interface belongs to: that of a virtio interface lies one folder up.
std::string pci_of_interface(const fs::path& interface) {
  std::error_code error;
  for (fs::path path = fs::canonical(interface / "device", error); path.has_relative_path();
       path = path.parent_path()) {
    if (is_pci_address(path.filename().string())) return path.filename().string();
  }
  return "";
}

// Empty where this host has no such NIC.
std::string find_nic(std::string name, const fs::path& root) {
  for (const fs::path& interface : entries_of(root / "sys/class/net")) {
    if (interface.filename() == name) return pci_of_interface(interface);
  }
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const fs::path& interface : entries_of(root / "sys/class/net")) {
    std::string address;
    std::ifstream(interface / "address") >> address;
    const std::string pci = address == name ? pci_of_interface(interface) : "";
    if (!pci.empty()) return pci;
  }
  const std::string pci = is_pci_address("0000:" + name) ? "0000:" + name : name;
  return is_pci_address(pci) && fs::exists(root / "sys/bus/pci/devices" / pci) ? pci : "";
}

std::string driver_of(const fs::path& device) {
  std::error_code error;
  return fs::read_symlink(device / "driver", error).filename().string();
}

HostCheck check_nic(const std::string& name, const fs::path& root) {
  const std::string title = fmt::format("nic {}", control::printable(name));
  const std::string pci = find_nic(name, root);
  if (pci.empty()) {
    return {title, Verdict::warn,
            "no NIC of this host has this PCI address, MAC or interface; bound to vfio-pci, it is "
            "known by its PCI address alone",
            "ls /sys/bus/pci/devices"};
  }
  const std::string driver = driver_of(root / "sys/bus/pci/devices" / pci);
  if (driver == "vfio-pci") {
    return good(title, fmt::format("{} is bound to vfio-pci", pci));
  }
  if (driver == "mlx4_core" || driver == "mlx5_core") {
    return good(title, fmt::format("{} has {}, which DPDK uses beside the kernel", pci, driver));
  }
  return {title, Verdict::warn,
          fmt::format("{} has {}, and not vfio-pci", pci,
                      driver.empty() ? "no driver" : fmt::format("the driver {}", driver)),
          fmt::format("sudo ./scripts/bringup.sh --nic {}", pci)};
}

HostCheck check_iommu(const fs::path& root) {
  const std::size_t groups = entries_of(root / "sys/kernel/iommu_groups").size();
  if (groups > 0) return good("iommu", fmt::format("on, {} groups", groups));
  std::string mode;
  std::ifstream(root / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode") >> mode;
  if (mode == "Y") {
    return good("iommu",
                "off, and vfio-pci does without: who uses the NIC reaches all memory of this host");
  }
  return {"iommu", Verdict::warn, "off: vfio-pci needs it",
          "VT-d or AMD-Vi in the firmware, and intel_iommu=on iommu=pt (AMD: iommu=pt) on Linux's "
          "command line; on a machine without: ./scripts/bringup.sh --no-iommu"};
}

HostCheck check_vfio(const fs::path& root) {
  if (fs::exists(root / "sys/bus/pci/drivers/vfio-pci")) {
    return good("vfio-pci", "loaded");
  }
  return {"vfio-pci", Verdict::warn, "not loaded", "sudo modprobe vfio-pci"};
}

}  // namespace

std::vector<HostCheck> check_dpdk_host(const std::vector<std::string>& nics, const fs::path& root) {
  std::vector<HostCheck> checks = {check_huge_pages(!nics.empty(), root)};
  if (nics.empty()) return checks;
  std::vector<HostCheck> of_nics;
  bool vfio = false;
  for (const std::string& nic : nics) {
    of_nics.push_back(check_nic(nic, root));
    const std::string pci = find_nic(nic, root);
    const std::string driver = driver_of(root / "sys/bus/pci/devices" / pci);
    vfio = vfio || (!pci.empty() && driver != "mlx4_core" && driver != "mlx5_core");
  }
  if (vfio) {
    checks.push_back(check_iommu(root));
    checks.push_back(check_vfio(root));
  }
  checks.insert(checks.end(), of_nics.begin(), of_nics.end());
  return checks;
}

}  // namespace gradcube::cli
