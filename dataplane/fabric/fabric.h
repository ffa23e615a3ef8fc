// What joins the ports of servers: it makes them, and carries frames from one to another. A server
// gets its ports from here, and does not know what lies behind them.
//
// Ownership: owns the ports and all that carries their frames. Frames that are under way lie in the
// mbufs of their senders' pools, so those pools outlive the fabric, or what it holds is discarded
// first. Frames that a server has received may lie in a pool of the fabric's, so whoever holds
// received frames gives them back before the fabric is destroyed.
//
// Threads: the control thread makes, connects and destroys it while no poller runs. port.h says who
// calls a port.
#ifndef GRADCUBE_DATAPLANE_FABRIC_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_FABRIC_H_

#include <cstdint>
#include <vector>

#include "bcube_forwarding/address.h"
#include "dataplane/fabric/port.h"

namespace gradcube::dataplane {

// Whether each frame that a server receives comes to the queue that it asks for: its UDP source
// port less 49152, modulo the port's queues. The kernel's filter and the embedded fabric see to it.
// Of a device nobody knows, even where it has taken flow rules.
enum class Steering : std::uint8_t { certain, uncertain };

class Fabric {
 public:
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // The server's ports, by number. Throws std::invalid_argument unless the fabric was made for this
  // server. The ports exist as long as the fabric, or until discard_packets().
  virtual std::vector<Port*> ports(bcube::ServerId server) = 0;

  // Frees every frame that is under way between the servers. Ends the traffic for good: no poller
  // may run any more, and no port may be used.
  virtual void discard_packets() = 0;

  // In bytes: what pools of its own take.
  virtual std::uint64_t pool_bytes() const { return 0; }

 protected:
  Fabric() = default;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_FABRIC_H_
