#include "dataplane/fabric/nic/pci_nic.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <regex>
#include <rte_ethdev.h>
#include <system_error>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "dataplane/fabric/nic/device_fabric.h"

namespace gradcube::dataplane {

namespace {

// The first takes a NIC from the kernel for DPDK. With the others the kernel keeps it, and DPDK
// uses it through libibverbs.
constexpr std::array<std::string_view, 3> kDrivers = {"vfio-pci", "mlx5_core", "mlx4_core"};

std::string driver_of(const std::filesystem::path& device) {
  std::error_code error;
  const std::filesystem::path driver = std::filesystem::read_symlink(device / "driver", error);
  return error ? "" : driver.filename().string();
}

}  // namespace

std::string pci_address(std::string_view text) {
  static const std::regex kForm("(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  std::string address(text);
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (!std::regex_match(address, kForm)) {
    throw control::UsageError(fmt::format("{} is no PCI address: expected one such as 0000:03:00.0",
                                          control::quoted(text)));
  }
  constexpr std::size_t kWithoutDomain = sizeof("03:00.0") - 1;
  return address.size() == kWithoutDomain ? "0000:" + address : address;
}

void check_nics(const std::vector<std::string>& addresses, const std::filesystem::path& pci) {
  for (const std::string& address : addresses) {
    const std::filesystem::path device = pci / address;
    std::error_code error;
    if (!std::filesystem::exists(device, error)) {
      throw control::SetupError(
          fmt::format("this host has no PCI device {}: `lspci -D` lists those it has", address));
    }
    const std::string driver = driver_of(device);
    if (std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end()) continue;
    throw control::SetupError(
        fmt::format("PCI device {} is bound to {}, and DPDK needs it bound to vfio-pci: "
                    "`scripts/bringup.sh --nic {}` as root",
                    address, driver.empty() ? "no driver" : driver, address));
  }
}

std::uint16_t device_of_nic(const std::string& address) {
  std::uint16_t device = 0;
  if (rte_eth_dev_get_port_by_name(address.c_str(), &device) == 0) return device;
  throw control::SetupError(
      fmt::format("DPDK has no driver for the NIC {}, or it may not use it: the log says more. The "
                  "drivers are packages called librte-net-...; a user other than root needs the "
                  "right to /dev/vfio/GROUP",
                  address));
}

namespace {

std::unique_ptr<ServerFabric> make_nic_ports(const PortsRequest& request, Clock& clock) {
  return make_device_fabric(request, clock, [](const std::string& nic, ServerFabric&) {
    return NamedDevice{device_of_nic(nic), "NIC " + nic};
  });
}

PortNeeds nic_needs(const control::ClusterSettings& settings, const std::vector<std::string>& nics,
                    unsigned queues) {
  check_nics(nics);
  // A NIC is given addresses of memory, and only huge pages keep theirs.
  return {.megabytes = device_megabytes(settings, queues), .huge_pages = true, .pci_devices = nics};
}

// How many queues a NIC has is known when DPDK runs, and a frame that comes to the wrong one is
// handed over. So users who want several say so.
std::size_t lcores_as_told(const control::ClusterSettings& settings) {
  return settings.server_lcores;
}

}  // namespace

const PortDriver kNicDriver{
    .name = "nics",
    .option = "--nics",
    .help =
        "the server's ports: a NIC for each level by its PCI address, level 0 first "
        "(\"0000:03:00.0,0000:03:00.1\"), bound to vfio-pci",
    .impair_advice = "the links of this server are not emulated: take one down at its switch",
    .read_name = pci_address,
    .adapt = refuse_emulation,
    .useful_lcores = lcores_as_told,
    .needs = nic_needs,
    .make = make_nic_ports};

}  // namespace gradcube::dataplane
