// One server's ports on Ethernet devices of DPDK's: what a daemon has that runs one server and
// drives its devices by itself. Who derives from it makes the ports.
//
// The ports have one queue each: which queue a frame comes to is the device's choice, and with one
// there is nothing to agree on. Link addresses are those of bcube_forwarding/neighbours.h, so
// nothing has to be discovered.
//
// Ownership: owns the ports. Pools, clock and pollers outlive it, the pollers until
// discard_packets() or the end.
//
// Threads: as fabric.h says.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_FABRIC_H_

#include <memory>
#include <vector>

#include "dataplane/fabric/fabric.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

class EthdevFabric : public Fabric {
 public:
  ~EthdevFabric() override;

  // Before the poller runs: lets it wake for the ports.
  void connect(Poller& poller);

  std::vector<Port*> ports(bcube::ServerId server) override;
  void discard_packets() override;

  const EthdevPort& port(unsigned number) const { return *ports_.at(number); }

 protected:
  explicit EthdevFabric(bcube::ServerId server) : server_(server) {}
  bcube::ServerId server() const { return server_; }
  // The port with the next number. Throws what EthdevPort throws.
  EthdevPort& add_port(const EthdevPortOptions& options, Clock& clock) {
    return *ports_.emplace_back(std::make_unique<EthdevPort>(options, clock));
  }

 private:
  // All ports, as far as time alone brings something about there.
  class PortWatch final : public Pollable {
   public:
    PortWatch(const std::vector<std::unique_ptr<EthdevPort>>& ports, Poller& poller);
    ~PortWatch() override;
    unsigned poll(Nanoseconds) override { return 0; }
    Nanoseconds next_event() const override;

   private:
    const std::vector<std::unique_ptr<EthdevPort>>& ports_;
    Poller& poller_;
  };

  bcube::ServerId server_;
  std::vector<std::unique_ptr<EthdevPort>> ports_;
  std::unique_ptr<PortWatch> watch_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_FABRIC_H_
