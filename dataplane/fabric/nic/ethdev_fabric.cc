#include "dataplane/fabric/nic/ethdev_fabric.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace gradcube::dataplane {

EthdevFabric::~EthdevFabric() = default;

void EthdevFabric::connect(Poller& poller) { watch_ = std::make_unique<PortWatch>(ports_, poller); }

std::vector<Port*> EthdevFabric::ports(bcube::ServerId server) {
  if (server != server_) {
    throw std::invalid_argument("server " + std::to_string(server) +
                                " has no ports in this fabric");
  }
  std::vector<Port*> ports;
  for (const auto& port : ports_) ports.push_back(port.get());
  return ports;
}

void EthdevFabric::discard_packets() {
  watch_.reset();
  ports_.clear();
}

EthdevFabric::PortWatch::PortWatch(const std::vector<std::unique_ptr<EthdevPort>>& ports,
                                   Poller& poller)
    : ports_(ports), poller_(poller) {
  poller_.add(*this, Poller::TimeBase::clock);
}

EthdevFabric::PortWatch::~PortWatch() { poller_.remove(*this); }

Nanoseconds EthdevFabric::PortWatch::next_event() const {
  Nanoseconds next = kNever;
  for (const auto& port : ports_) next = std::min(next, port->next_event(0));
  return next;
}

}  // namespace gradcube::dataplane
