// One server's ports: what a daemon has that runs one server, and whose neighbours are other
// daemons. A PortDriver (port_driver.h) makes it and its ports.
//
// Link addresses are those of bcube_forwarding/neighbours.h, so who knows a server's number knows
// them, and nothing has to be discovered.
//
// Ownership: owns the ports, and keeps what they stand on. The pools of PortsRequest, the clock and
// the pollers outlive it, the pollers until discard_packets() or the end.
//
// Threads: as fabric.h says.
#ifndef GRADCUBE_DATAPLANE_FABRIC_SERVER_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_SERVER_FABRIC_H_

#include <cstdint>
#include <forward_list>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/fabric/fabric.h"
#include "dataplane/fabric/waking_port.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

class ServerFabric final : public Fabric {
 public:
  using PollerOf = std::function<Poller&(std::uint16_t queue)>;

  explicit ServerFabric(bcube::ServerId server);
  ~ServerFabric() override;

  // The port with the next number.
  void add(std::unique_ptr<WakingPort> port) { ports_.push_back(std::move(port)); }
  // What the ports stand on: it goes after them, what was kept last first.
  void keep(std::shared_ptr<void> below) { kept_.push_front(std::move(below)); }
  // What uses the ports: it goes before them.
  void keep_above(std::shared_ptr<void> above) { above_ = std::move(above); }
  // A pool that is kept, and counts as the fabric's own.
  PacketPool& add_pool(const PacketPoolOptions& options);

  // Before the pollers run: lets each of them wake for the queues that it polls.
  void connect(const PollerOf& poller_of);

  std::vector<Port*> ports(bcube::ServerId server) override;
  // What is under way lies elsewhere: in the kernel, in a NIC, in shared memory.
  void discard_packets() override;
  std::uint64_t pool_bytes() const override { return pool_bytes_; }

 private:
  class QueueWatch;

  const bcube::ServerId server_;
  std::uint64_t pool_bytes_ = 0;
  // Each goes before those above it here.
  std::forward_list<std::shared_ptr<void>> kept_;
  std::vector<std::unique_ptr<WakingPort>> ports_;  // by number
  std::shared_ptr<void> above_;
  std::vector<std::unique_ptr<QueueWatch>> watches_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_SERVER_FABRIC_H_
