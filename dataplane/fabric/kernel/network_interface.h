// What a port has to know of a network interface of the kernel.
//
// Threads: any. The name is looked up in the network namespace of the calling thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_NETWORK_INTERFACE_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_NETWORK_INTERFACE_H_

#include <array>
#include <cstdint>
#include <string>

namespace gradcube::dataplane {

struct NetworkInterface {
  std::string name;
  int index = 0;
  std::array<std::uint8_t, 6> mac{};
  std::uint32_t mtu = 0;  // the largest IP packet, in bytes
};

// Throws control::SetupError if there is no Ethernet interface of this name, or if it is down.
NetworkInterface find_network_interface(const std::string& name);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_NETWORK_INTERFACE_H_
