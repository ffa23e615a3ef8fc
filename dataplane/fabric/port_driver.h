// A kind of ports that a server has whose neighbours are in other processes: what one row of the
// table in dataplane/daemon/port_drivers.h says of it. The daemon takes everything that differs
// between kinds from here, at its start; CONTRIBUTING.md has the recipe for another one.
//
// All of them copy what they receive into packets of this process, and put a checksum on all
// frames: who knows what is between two ports?
//
// Threads: the main thread, at start. Errors are control::UsageError and SetupError.
#ifndef GRADCUBE_DATAPLANE_FABRIC_PORT_DRIVER_H_
#define GRADCUBE_DATAPLANE_FABRIC_PORT_DRIVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/fabric/server_fabric.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

// What a server's ports are made of.
struct PortsRequest {
  const control::ClusterSettings& settings;  // of the daemon: with its lcores
  bcube::ServerId server = 0;
  std::vector<std::string> names;     // as the option has named them, and read_name() read them
  std::vector<PacketPool*> received;  // by queue, for full frames; they outlive the ports
};

// What DPDK has to be started with, beside the packets that all servers have.
struct PortNeeds {
  unsigned megabytes = 0;
  bool huge_pages = false;  // for a device that is given addresses of memory
  std::vector<std::string> pci_devices = {};
};

struct PortDriver {
  std::string_view name;    // in `status`
  std::string_view option;  // gradcubed's: "--interfaces"; empty where settings do
  const char* help;         // of that
  // What the option names: each port, level 0 first, by names that this separates, or as words of
  // their own if it is '\0'; or one thing for all ports together. There is none where the settings
  // name the fabric, as the driver is called, and all that it needs.
  enum class Names : std::uint8_t { by_port, together, by_settings };
  Names names = Names::by_port;
  char separator = ',';
  // Whether frames come to the queues that they ask for (fabric.h).
  Steering steering = Steering::uncertain;
  // What one who wants to impair its links is told.
  const char* impair_advice;
  // Of one name, for the others' use. Null: as it is.
  std::string (*read_name)(std::string_view name) = nullptr;
  // Makes the settings those of such a server, or refuses them.
  void (*adapt)(control::ClusterSettings& settings);
  // How many lcores are of use where the user names none.
  std::size_t (*useful_lcores)(const control::ClusterSettings& settings);
  // Null: nothing. queues: of each port. May look whether DPDK can use what is named.
  PortNeeds (*needs)(const control::ClusterSettings& settings,
                     const std::vector<std::string>& names, unsigned queues) = nullptr;
  // DPDK runs.
  std::unique_ptr<ServerFabric> (*make)(const PortsRequest& request, Clock& clock);
};

// --- For those who write a driver.

// Refuses, for adapt(), what emulated links alone do.
void refuse_emulation(control::ClusterSettings& settings);
// For useful_lcores(): as many as the server has threads, or as its ports can share their rate; or
// as it is to add up on.
std::size_t lcores_by_threads(const control::ClusterSettings& settings);
// In bits per second; 0: not limited.
std::uint64_t port_rate(const control::ClusterSettings& settings, bcube::ServerId server,
                        unsigned port);

// --- For those who use one.

// As read_name() reads them. Throws a UsageError unless each port has one, and none has two.
std::vector<std::string> checked_names(const PortDriver& driver,
                                       const std::vector<std::string>& names,
                                       const control::Topology& topology);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_PORT_DRIVER_H_
