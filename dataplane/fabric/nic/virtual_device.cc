#include "dataplane/fabric/nic/virtual_device.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "dataplane/fabric/nic/device_fabric.h"

namespace gradcube::dataplane {

namespace {

constexpr std::string_view kPrefix = "net_";

std::string device_name(const std::string& device) { return device.substr(0, device.find(',')); }

std::string checked_device(std::string_view text) {
  const std::string device(text);
  const std::string name = device_name(device);
  if (name.starts_with(kPrefix) && name.size() > kPrefix.size()) return device;
  throw control::UsageError(
      fmt::format("--vdevs {}: expected one of DPDK's network drivers and its arguments, for "
                  "example net_af_xdp0,iface=eth1",
                  control::quoted(text)));
}

// While it exists, DPDK has it.
class VirtualDevice {
 public:
  explicit VirtualDevice(const std::string& device) : name_(device_name(device)) {
    const std::string arguments = device.substr(std::min(name_.size() + 1, device.size()));
    const int failed = rte_eal_hotplug_add("vdev", name_.c_str(), arguments.c_str());
    if (failed == 0 && rte_eth_dev_get_port_by_name(name_.c_str(), &number_) == 0) return;
    if (failed == 0) rte_eal_hotplug_remove("vdev", name_.c_str());
    throw control::SetupError(
        fmt::format("DPDK does not make the device {}: {}; the log says more. Its drivers are "
                    "packages called librte-net-...",
                    control::quoted(device), rte_strerror(failed == 0 ? ENODEV : -failed)));
  }
  ~VirtualDevice() { rte_eal_hotplug_remove("vdev", name_.c_str()); }
  VirtualDevice(const VirtualDevice&) = delete;
  VirtualDevice& operator=(const VirtualDevice&) = delete;

  std::uint16_t number() const { return number_; }

 private:
  std::string name_;
  std::uint16_t number_ = 0;
};

std::unique_ptr<ServerFabric> make_virtual_ports(const PortsRequest& request, Clock& clock) {
  return make_device_fabric(request, clock, [](const std::string& name, ServerFabric& fabric) {
    const auto device = std::make_shared<VirtualDevice>(name);
    fabric.keep(device);
    return NamedDevice{device->number(), device_name(name)};
  });
}

PortNeeds needs_of_packets(const control::ClusterSettings& settings,
                           const std::vector<std::string>& /*devices*/, unsigned queues) {
  return {.megabytes = device_megabytes(settings, queues)};
}

}  // namespace

const PortDriver kVirtualDriver{
    .name = "vdevs",
    .option = "--vdevs",
    .help =
        "the server's ports: for each level, level 0 first, a device that a driver of DPDK's "
        "makes without hardware, as a word of its own: the driver, a number, and its arguments "
        "(net_af_xdp0,iface=eth1 net_af_xdp1,iface=eth2)",
    .separator = '\0',
    .impair_advice =
        "the links of this server are not emulated: take one down where its device "
        "leads to",
    .read_name = checked_device,
    .adapt = refuse_emulation,
    .useful_lcores =
        [](const control::ClusterSettings& settings) {
          return std::size_t{settings.server_lcores};
        },
    .needs = needs_of_packets,
    .make = make_virtual_ports};

}  // namespace gradcube::dataplane
