// One server's ports on devices that DPDK drives, and that have packets of their own: NICs
// (pci_nic.h), and what its drivers make without hardware (virtual_device.h).
//
// The port with number p is on the device p of those that were named. It receives for the link
// address of the port, whatever the device's own MAC is.
//
// Frames are copied where they meet the device. A NIC reads and writes memory that DPDK has mapped
// for it, and a trainer's is not; some devices take no frame that lies in several packets. And what
// a device receives is kept as long as a trainer is late, while its own packets go back at once.
//
// Ownership and threads: as server_fabric.h says. Owns the devices' packets.
//
// Errors: the constructor's are those of EthdevPort, and a SetupError for a device that can neither
// have another MAC address nor receive for all.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_DEVICE_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_DEVICE_FABRIC_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "dataplane/fabric/nic/ethdev_fabric.h"
#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

class DeviceFabric : public EthdevFabric {
 public:
  // The ports go before their packets.
  ~DeviceFabric() override { EthdevFabric::discard_packets(); }

  std::uint64_t pool_bytes() const override;

  // Of memory for the packets of `queues` queues of each port.
  static unsigned megabytes(const control::ClusterSettings& settings, unsigned queues);

 protected:
  explicit DeviceFabric(const PortsRequest& request);

  // The port with the next number, on this device of DPDK's. what: for messages.
  void add_device(const PortsRequest& request, std::uint16_t device, const std::string& what,
                  Clock& clock);

 private:
  std::deque<PacketPool> pools_;          // of each queue two
  std::vector<EthdevQueuePools> queues_;  // their pools
  unsigned devices_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_DEVICE_FABRIC_H_
