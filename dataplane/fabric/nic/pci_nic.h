// A NIC on the PCI bus that one of DPDK's drivers runs: what has to be so before DPDK starts, and
// which Ethernet device it is afterwards.
//
// DPDK leaves out without a word what it cannot use. So check_nics() looks first, and says what is
// missing: each NIC is there, and bound to vfio-pci (or to a driver that shares it with DPDK).
//
// Threads: the main thread, at start.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_PCI_NIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_PCI_NIC_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

// "0000:03:00.0" of "0000:03:00.0" or "03:00.0", in lower case. Throws control::UsageError.
std::string pci_address(std::string_view text);

// These PCI addresses, as pci_address() gives them. Throws control::SetupError about the first that
// DPDK could not use. pci: where the kernel lists the devices.
void check_nics(const std::vector<std::string>& addresses,
                const std::filesystem::path& pci = "/sys/bus/pci/devices");

// DPDK's number of the NIC. Needs an Eal that was given the address. Throws control::SetupError if
// no driver has taken the NIC.
std::uint16_t device_of_nic(const std::string& address);

// `gradcubed --nics 03:00.0,03:00.1`.
extern const PortDriver kNicDriver;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_PCI_NIC_H_
