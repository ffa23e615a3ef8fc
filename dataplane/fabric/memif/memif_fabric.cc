#include "dataplane/fabric/memif/memif_fabric.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "control/base/errors.h"

namespace gradcube::dataplane {

MemifFabric::MemifFabric(const MemifFabricOptions& options, Clock& clock)
    : server_(options.server) {
  const auto levels = static_cast<unsigned>(options.sockets.size());
  for (unsigned level = 0; level < levels; ++level) {
    const std::filesystem::path& socket = options.sockets[level];
    MemifOptions of_device;
    of_device.socket = sockets_.try_emplace(socket, socket).first->second.path();
    of_device.number = memif_number(server_, level, levels);
    of_device.role = MemifOptions::Role::connects;
    of_device.mtu = options.mtu;
    of_device.slots = options.slots;
    Link link;
    link.device = std::make_unique<MemifDevice>(of_device);
    EthdevPortOptions of_port = link.device->port_options();
    of_port.pools = {options.pools};
    if (!options.bits_per_second.empty()) {
      of_port.bits_per_second = options.bits_per_second.at(level);
    }
    try {
      link.port = std::make_unique<EthdevPort>(of_port, clock);
    } catch (const control::SetupError& error) {
      throw control::SetupError(
          fmt::format("level {}: {}; a daemon of the switches has to listen at {}", level,
                      error.what(), socket.string()));
    }
    links_.push_back(std::move(link));
  }
}

MemifFabric::~MemifFabric() { discard_packets(); }

void MemifFabric::connect(Poller& poller) { watch_ = std::make_unique<PortWatch>(links_, poller); }

std::vector<Port*> MemifFabric::ports(bcube::ServerId server) {
  if (server != server_) {
    throw std::invalid_argument("server " + std::to_string(server) +
                                " has no ports in this fabric");
  }
  std::vector<Port*> ports;
  for (const Link& link : links_) ports.push_back(link.port.get());
  return ports;
}

void MemifFabric::discard_packets() {
  watch_.reset();
  links_.clear();
}

MemifFabric::PortWatch::PortWatch(const std::vector<Link>& links, Poller& poller)
    : links_(links), poller_(poller) {
  poller_.add(*this, Poller::TimeBase::clock);
}

MemifFabric::PortWatch::~PortWatch() { poller_.remove(*this); }

Nanoseconds MemifFabric::PortWatch::next_event() const {
  Nanoseconds next = kNever;
  for (const Link& link : links_) next = std::min(next, link.port->next_event(0));
  return next;
}

}  // namespace gradcube::dataplane
