#include "dataplane/fabric/emulated/emulated_switch.h"

#include <algorithm>
#include <cassert>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/link_clock.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kMaxEgressFrames = 1U << 22;
constexpr std::uint32_t kSpareFrames = 64;

MacTable forwarding(const std::vector<SwitchPort>& ports) {
  MacTable table;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    for (const std::uint64_t mac : ports[port].addresses) {
      table.add(mac, static_cast<std::uint16_t>(port));
    }
  }
  return table;
}

// Enough for the smallest frames to fill the queue in bytes, and for those on their way behind it.
std::uint32_t egress_frames(const LinkProfile& profile, std::uint32_t unbounded) {
  double frames = unbounded;
  if (profile.queue_bytes != 0 && profile.bits_per_second != 0) {
    frames = static_cast<double>(profile.queue_bytes) / kMinFrameBytes;
  }
  const double frames_per_second =
      static_cast<double>(profile.bits_per_second) / (8.0 * (kMinFrameBytes + kWireOverheadBytes));
  frames += frames_per_second * static_cast<double>(profile.delay) / 1e9 + kSpareFrames;
  return static_cast<std::uint32_t>(std::min<double>(frames, kMaxEgressFrames));
}

}  // namespace

EmulatedSwitch::EmulatedSwitch(const EmulatedSwitchOptions& options,
                               const std::vector<SwitchPort>& ports, const PacketPool* clones)
    : ports_(static_cast<std::uint16_t>(ports.size())),
      macs_(forwarding(ports)),
      publisher_(ports.size()) {
  assert(!ports.empty() && ports.size() < kUnknownMac);
  assert(options.shards >= 1 && options.shards <= ports.front().port->queues());
  assert(options.shards == 1 || !options.profile.limited());
  assert(options.profile.limited() || options.trunks.empty());
  SwitchShard::Setup setup;
  for (const SwitchPort& one : ports) {
    assert(one.port->queues() == ports.front().port->queues());
    assert(one.bits_per_second == 0 || options.profile.bits_per_second != 0);
    setup.ports.push_back(one.port);
    setup.places.push_back(one.place);
    LinkProfile& profile = setup.profiles.emplace_back(options.profile);
    if (one.bits_per_second != 0) profile.bits_per_second = one.bits_per_second;
    setup.egress_frames.push_back(egress_frames(profile, options.egress_frames));
  }
  setup.trunks = options.trunks;
  for (TrunkLevel& trunks : setup.trunks) {
    assert(trunks.places > 0 && trunks.link.bits_per_second != 0);
    trunks.frames = egress_frames(trunks.link, options.egress_frames);
  }
  setup.macs = &macs_;
  setup.publisher = &publisher_;
  setup.clones = clones == nullptr ? nullptr : clones->get();
  setup.seed = options.seed;
  setup.shards = options.shards;
  for (setup.index = 0; setup.index < options.shards; ++setup.index) {
    shards_.push_back(std::make_unique<SwitchShard>(setup));
  }
}

void EmulatedSwitch::set_impairments(std::uint16_t port, const Impairments& impairments) {
  publisher_.publish(port, impairments);
}

void EmulatedSwitch::set_impairments(const Impairments& impairments) {
  for (std::uint16_t port = 0; port < ports_; ++port) publisher_.publish(port, impairments);
}

std::vector<EmulatedSwitch::TrunkCounts> EmulatedSwitch::trunk_counts() const {
  std::vector<TrunkCounts> all;
  const TrunkTree* const trunks = shards_.front()->trunks();
  for (std::size_t i = 0; trunks != nullptr && i < trunks->trunks(); ++i) {
    add_counters(all.emplace_back(TrunkCounts{trunks->at(i), {}}).counts, trunks->counters(i));
  }
  return all;
}

SwitchPortCounts EmulatedSwitch::counts(std::uint16_t port) const {
  assert(port < ports_);
  SwitchPortCounts sum;
  for (const auto& shard : shards_) add_counters(sum, shard->counters(port));
  return sum;
}

}  // namespace gradcube::dataplane
