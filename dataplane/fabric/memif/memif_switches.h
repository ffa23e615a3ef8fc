// Emulated switches whose servers are in other processes: an embedded fabric (emulated/), and for
// each of its links a memif at which the server's daemon connects (memif_fabric.h).
//
// Behind each memif stands the server's end of a ring port, as an engine stands behind one in an
// embedded cluster: a patch moves the frames between the two, both ways, by reference. So the
// switches know nothing of processes, and their links have rate, queue, delay and faults as
// everywhere.
//
// A memif with several queues brings each frame to the server on the queue that a hash of its
// source says, as the RSS of a NIC does that knows nothing of threads. So what servers on such NICs
// do is seen here.
//
// Where a ring has no room, frames wait in the memif, and then in the server's port. A server that
// is gone or stands still takes no frames; its patch drops them soon (ethdev_port.h), so that the
// other servers of the switch go on.
//
// Ownership: owns devices, ports and the fabric. Pools, clock and the poller outlive it, the poller
// until discard_packets() or the end.
//
// Threads: as fabric.h says; all links are one poller's.
//
// Errors: the constructor's are those of EmbeddedFabric, MemifDevice and EthdevPort.
#ifndef GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_SWITCHES_H_
#define GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_SWITCHES_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"
#include "dataplane/fabric/memif/memif_device.h"
#include "dataplane/fabric/memif/memif_socket.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

struct MemifSwitchesOptions {
  EmbeddedFabricOptions fabric;  // its ports have one queue
  std::filesystem::path socket = {};
  std::uint16_t slots = 256;     // of each ring
  std::uint16_t queues = 1;      // of each memif; at most kMostQueues
  PacketPool* frames = nullptr;  // of mtu + kEthernetBytes bytes at least
};

class MemifSwitches {
 public:
  static constexpr std::uint16_t kMostQueues = control::kMostServerLcores;

  MemifSwitches(const MemifSwitchesOptions& options, Clock& clock);
  ~MemifSwitches();
  MemifSwitches(const MemifSwitches&) = delete;
  MemifSwitches& operator=(const MemifSwitches&) = delete;

  // Before the poller runs: gives it switches and links.
  void connect(Poller& poller);

  // Frees every frame that is under way. The poller may not run any more.
  void discard_packets();

  EmbeddedFabric& fabric() { return fabric_; }
  const EmbeddedFabric& fabric() const { return fabric_; }
  // Of link i of the fabric's.
  const EthdevPort& port(std::size_t link) const { return *links_.at(link)->port; }

 private:
  class Patch final : public Pollable {
   public:
    Patch(EthdevPort& outside, RingPort& inside) : outside_(outside), inside_(inside) {}
    unsigned poll(Nanoseconds now) override;
    Nanoseconds next_event() const override;

   private:
    unsigned pass_to_server();

    EthdevPort& outside_;
    RingPort& inside_;
  };
  struct Link {
    std::unique_ptr<MemifDevice> device;
    std::unique_ptr<EthdevPort> port;  // goes before the device
    std::unique_ptr<Patch> patch;
  };

  MemifSocket socket_;
  EmbeddedFabric fabric_;
  std::vector<std::unique_ptr<Link>> links_;  // as those of the fabric
  Poller* poller_ = nullptr;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_SWITCHES_H_
