#include "dataplane/fabric/memif/memif_switches.h"

#include <algorithm>

#include "dataplane/fabric/memif/memif_fabric.h"

namespace gradcube::dataplane {

namespace {
constexpr std::uint16_t kBurst = 32;
}

MemifSwitches::MemifSwitches(const MemifSwitchesOptions& options, Clock& clock)
    : socket_(options.socket), fabric_(options.fabric) {
  for (const EmbeddedFabric::LinkAt& at : fabric_.links()) {
    MemifOptions of_device;
    of_device.socket = socket_.path();
    of_device.number = memif_number(at.server, at.server_port, fabric_.space().ports());
    of_device.role = MemifOptions::Role::listens;
    of_device.mtu = options.fabric.port.mtu;
    of_device.slots = options.slots;
    auto link = std::make_unique<Link>();
    link->device = std::make_unique<MemifDevice>(of_device);
    EthdevPortOptions of_port = link->device->port_options();
    of_port.pools = {{.received = options.frames, .device = nullptr, .sent = nullptr}};
    link->port = std::make_unique<EthdevPort>(of_port, clock);
    link->patch = std::make_unique<Patch>(*link->port, fabric_.port(at.server, at.server_port));
    links_.push_back(std::move(link));
  }
}

MemifSwitches::~MemifSwitches() { discard_packets(); }

void MemifSwitches::connect(Poller& poller) {
  poller_ = &poller;
  fabric_.connect([&](bcube::ServerId, std::uint16_t) -> Poller& { return poller; }, {&poller});
  for (const auto& link : links_) poller.add(*link->patch, Poller::TimeBase::clock);
}

void MemifSwitches::discard_packets() {
  for (const auto& link : links_) {
    if (poller_ != nullptr) poller_->remove(*link->patch);
  }
  links_.clear();
  fabric_.discard_packets();
}

unsigned MemifSwitches::Patch::poll(Nanoseconds) {
  rte_mbuf* burst[kBurst];
  std::uint16_t room = std::min(kBurst, inside_.transmit_room(0));
  // Also without room: the port then sends what it could not before.
  const std::uint16_t in = outside_.receive(0, burst, room);
  if (in != 0) inside_.transmit(0, burst, in);
  room = std::min(kBurst, outside_.transmit_room(0));
  const std::uint16_t out = room == 0 ? std::uint16_t{0} : inside_.receive(0, burst, room);
  if (out != 0) outside_.transmit(0, burst, out);
  return in + out;
}

}  // namespace gradcube::dataplane
