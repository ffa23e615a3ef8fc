// One server's ports on network interfaces of the kernel: what a daemon has that runs one server,
// and whose neighbours are other daemons.
//
// Port p is interface p of those that were named. Its link address is that which
// bcube_forwarding/neighbours.h gives the server at that port, whatever the interface's own MAC is.
// So who knows a server's number knows its addresses, and nothing has to be discovered.
//
// Ownership: owns the ports. Pools, clock and pollers outlive it, the pollers until
// discard_packets() or the end.
//
// Threads: as fabric.h says.
//
// Errors: the constructor's are those of PacketPort's.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/fabric/fabric.h"
#include "dataplane/fabric/kernel/packet_port.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

struct InterfaceFabricOptions {
  bcube::ServerId server = 0;
  std::vector<std::string> interfaces = {};  // by port
  std::uint32_t mtu = 0;                     // of every port; 0: the interface's
  // Of the ports by number, or without any: not limited.
  std::vector<std::uint64_t> bits_per_second = {};
  std::uint32_t receive_depth = 1024;  // as PacketPortOptions has them
  std::uint32_t transmit_depth = 256;
  std::vector<PacketPool*> pools = {};  // by queue of every port
};

class InterfaceFabric final : public Fabric {
 public:
  using PollerOf = std::function<Poller&(std::uint16_t queue)>;

  InterfaceFabric(const InterfaceFabricOptions& options, Clock& clock);
  ~InterfaceFabric() override;

  // Before the pollers run: lets each of them wake for the queues that it polls.
  void connect(const PollerOf& poller_of);

  std::vector<Port*> ports(bcube::ServerId server) override;
  void discard_packets() override;

  const PacketPort& port(unsigned number) const { return *ports_.at(number); }
  PacketPort& port(unsigned number) { return *ports_.at(number); }

 private:
  // One queue of all ports, as far as time alone brings something about there.
  class QueueWatch final : public Pollable {
   public:
    QueueWatch(const std::vector<std::unique_ptr<PacketPort>>& ports, std::uint16_t queue,
               Poller& poller);
    ~QueueWatch() override;
    unsigned poll(Nanoseconds) override { return 0; }
    Nanoseconds next_event() const override;

   private:
    const std::vector<std::unique_ptr<PacketPort>>& ports_;
    std::uint16_t queue_;
    Poller& poller_;
  };

  bcube::ServerId server_;
  std::vector<std::unique_ptr<PacketPort>> ports_;  // by number
  std::vector<std::unique_ptr<QueueWatch>> watches_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
