#include "dataplane/fabric/kernel/interface_fabric.h"

#include <algorithm>
#include <stdexcept>

#include "bcube_forwarding/neighbours.h"

namespace gradcube::dataplane {

InterfaceFabric::InterfaceFabric(const InterfaceFabricOptions& options, Clock& clock)
    : server_(options.server) {
  for (unsigned number = 0; number < options.interfaces.size(); ++number) {
    PacketPortOptions port;
    port.interface = options.interfaces[number];
    port.mac = bcube::embedded_link_address(number, options.server).mac;
    port.mtu = options.mtu;
    port.pools = options.pools;
    port.receive_depth = options.receive_depth;
    port.transmit_depth = options.transmit_depth;
    if (!options.bits_per_second.empty()) port.bits_per_second = options.bits_per_second.at(number);
    ports_.push_back(std::make_unique<PacketPort>(port, clock));
  }
}

InterfaceFabric::~InterfaceFabric() { discard_packets(); }

void InterfaceFabric::connect(const PollerOf& poller_of) {
  if (ports_.empty()) return;
  for (std::uint16_t queue = 0; queue < ports_.front()->queues(); ++queue) {
    watches_.push_back(std::make_unique<QueueWatch>(ports_, queue, poller_of(queue)));
  }
}

std::vector<Port*> InterfaceFabric::ports(bcube::ServerId server) {
  if (server != server_) {
    throw std::invalid_argument("server " + std::to_string(server) +
                                " has no ports in this fabric");
  }
  std::vector<Port*> ports;
  for (const auto& port : ports_) ports.push_back(port.get());
  return ports;
}

// What is under way lies in the kernel, which has copies.
void InterfaceFabric::discard_packets() {
  watches_.clear();
  ports_.clear();
}

InterfaceFabric::QueueWatch::QueueWatch(const std::vector<std::unique_ptr<PacketPort>>& ports,
                                        std::uint16_t queue, Poller& poller)
    : ports_(ports), queue_(queue), poller_(poller) {
  for (const auto& port : ports_) poller_.watch(port->wake_descriptor(queue_));
  poller_.add(*this, Poller::TimeBase::clock);
}

InterfaceFabric::QueueWatch::~QueueWatch() {
  poller_.remove(*this);
  for (const auto& port : ports_) poller_.unwatch(port->wake_descriptor(queue_));
}

Nanoseconds InterfaceFabric::QueueWatch::next_event() const {
  Nanoseconds next = kNever;
  for (const auto& port : ports_) next = std::min(next, port->next_event(queue_));
  return next;
}

}  // namespace gradcube::dataplane
