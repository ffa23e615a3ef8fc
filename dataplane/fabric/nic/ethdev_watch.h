// Wakes a poller for its queues of ports on Ethernet devices, as far as time alone brings something
// about there (EthdevPort::next_event()).
//
// Ownership and threads: the ports and the poller outlive it. Made and destroyed by the control
// thread; the rest is the poller's.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_WATCH_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_WATCH_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

class EthdevWatch final : public Pollable {
 public:
  EthdevWatch(std::vector<const EthdevPort*> ports, std::uint16_t queue, Poller& poller)
      : ports_(std::move(ports)), queue_(queue), poller_(poller) {
    poller_.add(*this, Poller::TimeBase::clock);
  }
  ~EthdevWatch() override { poller_.remove(*this); }
  EthdevWatch(const EthdevWatch&) = delete;
  EthdevWatch& operator=(const EthdevWatch&) = delete;

  unsigned poll(Nanoseconds) override { return 0; }
  Nanoseconds next_event() const override {
    Nanoseconds next = kNever;
    for (const EthdevPort* port : ports_) next = std::min(next, port->next_event(queue_));
    return next;
  }

 private:
  std::vector<const EthdevPort*> ports_;
  std::uint16_t queue_;
  Poller& poller_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_WATCH_H_
