// One server's ports on memif links to emulated switches in other processes (memif_switches.h): what
// a daemon has that runs one server without any right of root's.
//
// The port of level l is memif number server x levels + l, at the socket of the process that has the
// switch there. Link addresses are those of bcube_forwarding/neighbours.h, as on every fabric.
//
// The ports have one queue each: the other end chooses the queue of a frame, and with one there is
// nothing to agree on.
//
// Ownership: owns devices and ports. Pools, clock and pollers outlive it, the pollers until
// discard_packets() or the end.
//
// Threads: as fabric.h says.
//
// Errors: the constructor's are those of MemifDevice and EthdevPort; where nobody listens, they say
// what is missing.
#ifndef GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_FABRIC_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "dataplane/fabric/fabric.h"
#include "dataplane/fabric/memif/memif_device.h"
#include "dataplane/fabric/memif/memif_socket.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

// Of the port at a server's port number, in a cluster whose servers have so many ports.
constexpr std::uint32_t memif_number(bcube::ServerId server, unsigned port, unsigned ports) {
  return server * ports + port;
}

struct MemifFabricOptions {
  bcube::ServerId server = 0;
  std::vector<std::filesystem::path> sockets = {};  // by level
  std::uint32_t mtu = 1500;
  // Of the ports by level, or without any: not limited.
  std::vector<std::uint64_t> bits_per_second = {};
  std::uint16_t slots = 256;  // of each ring
  EthdevQueuePools pools = {};
};

class MemifFabric final : public Fabric {
 public:
  MemifFabric(const MemifFabricOptions& options, Clock& clock);
  ~MemifFabric() override;

  // Before the poller runs: lets it wake for the ports.
  void connect(Poller& poller);

  std::vector<Port*> ports(bcube::ServerId server) override;
  void discard_packets() override;

  const EthdevPort& port(unsigned level) const { return *links_.at(level).port; }

 private:
  struct Link {
    std::unique_ptr<MemifDevice> device;
    std::unique_ptr<EthdevPort> port;  // goes before the device
  };
  // All ports, as far as time alone brings something about there.
  class PortWatch final : public Pollable {
   public:
    PortWatch(const std::vector<Link>& links, Poller& poller);
    ~PortWatch() override;
    unsigned poll(Nanoseconds) override { return 0; }
    Nanoseconds next_event() const override;

   private:
    const std::vector<Link>& links_;
    Poller& poller_;
  };

  bcube::ServerId server_;
  std::map<std::filesystem::path, MemifSocket> sockets_;
  std::vector<Link> links_;  // by level
  std::unique_ptr<PortWatch> watch_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_FABRIC_H_
