#include "dataplane/fabric/memif/memif_device.h"

#include <bit>
#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <sys/stat.h>

#include "control/base/errors.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/memif/quiet_memif.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kCacheLine = 64;
// All that the driver answers for.
constexpr std::uint32_t kMtuOfDriver = 1500;

// Unique in this process.
std::string name_of(const MemifOptions& options) {
  return fmt::format("net_memif{}{}", options.role == MemifOptions::Role::listens ? 's' : 'c',
                     options.number);
}

std::string arguments_of(const MemifOptions& options) {
  const std::uint32_t slot = (options.mtu + kEthernetBytes + kCacheLine - 1) / kCacheLine;
  return fmt::format("role={},id={},bsize={},rsize={},socket={},socket-abstract=no",
                     options.role == MemifOptions::Role::listens ? "server" : "client",
                     options.number, slot * kCacheLine, std::countr_zero(options.slots),
                     options.socket);
}

// While it exists, files that this process makes are for its user alone: the driver makes a socket
// for whomever the umask allows.
class PrivateFiles {
 public:
  PrivateFiles() : before_(umask(S_IRWXG | S_IRWXO)) {}
  ~PrivateFiles() { umask(before_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  mode_t before_;
};

}  // namespace

MemifDevice::MemifDevice(const MemifOptions& options)
    : name_(name_of(options)), mtu_(options.mtu), slots_(options.slots) {
  const PrivateFiles private_files;
  // For each device it would complain that DPDK's processes cannot talk to each other, as they need
  // not.
  const QuietMemif quiet;
  const int failed = rte_eal_hotplug_add("vdev", name_.c_str(), arguments_of(options).c_str());
  if (failed != 0) {
    throw control::SetupError(
        fmt::format("DPDK does not make a memif interface at {}: {}; it needs the package "
                    "librte-net-memif23 and room for it among {} devices",
                    options.socket, rte_strerror(-failed), kMostDevices));
  }
  rte_eth_dev_get_port_by_name(name_.c_str(), &device_);
}

MemifDevice::~MemifDevice() { rte_eal_hotplug_remove("vdev", name_.c_str()); }

EthdevPortOptions MemifDevice::port_options() const {
  EthdevPortOptions options;
  options.device = device_;
  options.name = name_;
  options.mtu = mtu_;
  options.device_mtu = kMtuOfDriver;
  options.ends_on_interrupt_thread = true;
  options.receive_depth = slots_;
  options.transmit_depth = slots_;
  return options;
}

}  // namespace gradcube::dataplane
