// One of DPDK's shared-memory interfaces (net_memif) in this process: an Ethernet device whose
// frames another process on this host receives, without root and without the kernel.
//
// Two devices are joined if they have the same number at the same socket. One of them listens at
// the socket (the server), as many devices can; the other one connects to it. The rings lie in
// memory that the one that connects has made. A frame is copied twice, into a slot and out of it; a
// chain of packets comes out as one. When one of the two processes ends, the other's device has no
// link any more; it has one again when a new process has connected. One that connects does so when
// it is started, so it has to be started again when a new process listens (memif_reconnection.h).
//
// Trust: the driver believes what the other process writes into the rings' descriptors: offsets and
// lengths. So both must be processes of one user, as they are: the socket lies in a folder that
// belongs to the user alone (control/settings/run_directory.h). What the frames contain is checked
// as everywhere.
//
// Ownership: the device is an EthdevPort's to configure, start and close. It must not exist any
// more when this is destroyed. Owns nothing else but what the driver has.
//
// Threads: the control thread makes and destroys it. The driver serves the socket on EAL's
// interrupt thread, and takes the link down there when the other side leaves; so the port on it is
// stopped and closed there, too. Two that did it at once freed the link twice.
//
// Errors: the constructor throws control::SetupError.
#ifndef GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_DEVICE_H_
#define GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_DEVICE_H_

#include <cstdint>
#include <string>

#include "dataplane/fabric/nic/ethdev_port.h"

namespace gradcube::dataplane {

// Devices of all kinds that DPDK, as Debian builds it, has room for in a process.
inline constexpr unsigned kMostDevices = 32;

struct MemifOptions {
  enum class Role : std::uint8_t { listens, connects };

  std::string socket = {};  // its path, without what separates a driver's options (',', '[')
  std::uint32_t number = 0;
  Role role = Role::connects;
  std::uint32_t mtu = 1500;
  std::uint16_t slots = 256;  // of each ring, a power of two; a full frame fits into one
};

class MemifDevice {
 public:
  explicit MemifDevice(const MemifOptions& options);
  ~MemifDevice();
  MemifDevice(const MemifDevice&) = delete;
  MemifDevice& operator=(const MemifDevice&) = delete;

  // What a port on this device needs, all but its pools and its rate.
  EthdevPortOptions port_options() const;

 private:
  std::string name_;
  std::uint16_t device_ = 0;
  std::uint32_t mtu_;
  std::uint16_t slots_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_DEVICE_H_
