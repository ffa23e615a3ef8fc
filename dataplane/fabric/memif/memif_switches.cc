#include "dataplane/fabric/memif/memif_switches.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/memif/memif_fabric.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint16_t kBurst = 32;

// A hash of the sender's address and port.
std::uint16_t queue_by_hash(const rte_mbuf* packet, std::uint16_t queues) {
  constexpr std::uint32_t kSourceAt = kEthernetBytes + 12;
  constexpr std::uint32_t kGoldenRatio = 0x9e3779b1;
  if (packet->data_len < kFlowFieldBytes) return 0;
  std::uint32_t address = 0;
  std::memcpy(&address, rte_pktmbuf_mtod_offset(packet, const char*, kSourceAt), sizeof(address));
  const std::uint32_t port = field16(packet, kEthernetBytes + kIpv4Bytes);
  const std::uint32_t hash = (address ^ port << 16) * kGoldenRatio;
  return static_cast<std::uint16_t>((std::uint64_t{hash} * queues) >> 32);
}

}  // namespace

MemifSwitches::MemifSwitches(const MemifSwitchesOptions& options, Clock& clock)
    : socket_(options.socket), fabric_(options.fabric) {
  assert(options.queues <= kMostQueues);
  for (const EmbeddedFabric::LinkAt& at : fabric_.links()) {
    MemifOptions of_device;
    of_device.socket = socket_.path();
    of_device.number =
        memif_number(at.server, at.server_port, fabric_.space().ports(), options.queues);
    of_device.role = MemifOptions::Role::listens;
    of_device.mtu = options.fabric.port.mtu;
    of_device.slots = options.slots;
    auto link = std::make_unique<Link>();
    link->device = std::make_unique<MemifDevice>(of_device);
    EthdevPortOptions of_port = link->device->port_options();
    of_port.pools.assign(options.queues,
                         {.received = options.frames, .device = nullptr, .sent = nullptr});
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
  unsigned moved = 0;
  for (std::uint16_t queue = 0; queue < outside_.queues(); ++queue) {
    const std::uint16_t room = std::min(kBurst, inside_.transmit_room(0));
    // Also without room: the port then sends what it could not before.
    const std::uint16_t in = outside_.receive(queue, burst, room);
    if (in != 0) inside_.transmit(0, burst, in);
    moved += in;
  }
  return moved + pass_to_server();
}

unsigned MemifSwitches::Patch::pass_to_server() {
  std::uint16_t room = kBurst;
  for (std::uint16_t queue = 0; queue < outside_.queues(); ++queue) {
    room = std::min(room, outside_.transmit_room(queue));
  }
  rte_mbuf* burst[kBurst];
  const std::uint16_t out = room == 0 ? std::uint16_t{0} : inside_.receive(0, burst, room);
  if (outside_.queues() == 1) {
    if (out != 0) outside_.transmit(0, burst, out);
    return out;
  }
  rte_mbuf* by_queue[kMostQueues][kBurst];
  std::array<std::uint16_t, kMostQueues> count{};
  for (std::uint16_t i = 0; i < out; ++i) {
    const std::uint16_t queue = queue_by_hash(burst[i], outside_.queues());
    by_queue[queue][count[queue]++] = burst[i];
  }
  for (std::uint16_t queue = 0; queue < outside_.queues(); ++queue) {
    if (count[queue] != 0) outside_.transmit(queue, by_queue[queue], count[queue]);
  }
  return out;
}

Nanoseconds MemifSwitches::Patch::next_event() const {
  Nanoseconds next = kNever;
  for (std::uint16_t queue = 0; queue < outside_.queues(); ++queue) {
    next = std::min(next, outside_.next_event(queue));
  }
  return next;
}

}  // namespace gradcube::dataplane
