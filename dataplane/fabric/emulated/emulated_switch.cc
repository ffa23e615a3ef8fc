#include "dataplane/fabric/emulated/emulated_switch.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/link_clock.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kMaxEgressFrames = 1U << 22;
constexpr std::uint32_t kSpareFrames = 64;

std::vector<std::pair<std::uint64_t, std::uint16_t>> forwarding(
    const std::vector<SwitchPort>& ports) {
  std::vector<std::pair<std::uint64_t, std::uint16_t>> entries;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    for (const std::uint64_t mac : ports[port].addresses) {
      entries.emplace_back(mac, static_cast<std::uint16_t>(port));
    }
  }
  return entries;
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

void check_rate(std::uint64_t rate) {
  if (rate == 0 || rate >= LinkClock::kMinRate) return;
  throw std::runtime_error(
      "the rate of a link must be at least 1 Mbit/s (or 0: not limited), not " +
      std::to_string(rate) + " bit/s");
}

void check(const EmulatedSwitchOptions& options, const std::vector<SwitchPort>& ports) {
  if (ports.empty() || ports.size() >= MacTable::kUnknown) {
    throw std::runtime_error("a switch must have 1 to " + std::to_string(MacTable::kUnknown - 1) +
                             " ports");
  }
  for (const SwitchPort& one : ports) {
    if (one.port == nullptr) throw std::runtime_error("a switch port has no link");
    if (one.port->queues() != ports.front().port->queues()) {
      throw std::runtime_error("all ports of a switch must have the same number of queues");
    }
  }
  if (options.shards == 0 || options.shards > ports.front().port->queues()) {
    throw std::runtime_error(
        "a switch must have 1 to " + std::to_string(ports.front().port->queues()) +
        " shards, one per queue of its ports at most, not " + std::to_string(options.shards));
  }
  if (options.shards > 1 && options.profile.limited()) {
    throw std::runtime_error(
        "a switch with a rate or a bounded queue must have one shard, because its queues share the "
        "wires");
  }
  check_rate(options.profile.bits_per_second);
  for (const SwitchPort& one : ports) {
    check_rate(one.bits_per_second);
    if (one.bits_per_second != 0 && options.profile.bits_per_second == 0) {
      throw std::runtime_error("a link has a rate of its own, and the others have none");
    }
  }
  for (const TrunkLevel& trunks : options.trunks) {
    if (options.profile.limited() && trunks.places > 0 &&
        trunks.link.bits_per_second >= LinkClock::kMinRate) {
      continue;
    }
    throw std::runtime_error(
        "the trunks of a tree must have a rate, and so must the links of its servers");
  }
  if (options.profile.delay < 0) throw std::runtime_error("a switch's delay must not be negative");
}

}  // namespace

EmulatedSwitch::EmulatedSwitch(const EmulatedSwitchOptions& options,
                               const std::vector<SwitchPort>& ports, const PacketPool* clones)
    : ports_(static_cast<std::uint16_t>(ports.size())),
      macs_(forwarding(ports)),
      publisher_(ports.size()) {
  check(options, ports);
  SwitchShard::Setup setup;
  for (const SwitchPort& one : ports) {
    setup.ports.push_back(one.port);
    setup.places.push_back(one.place);
    LinkProfile& profile = setup.profiles.emplace_back(options.profile);
    if (one.bits_per_second != 0) profile.bits_per_second = one.bits_per_second;
    setup.egress_frames.push_back(egress_frames(profile, options.egress_frames));
  }
  setup.trunks = options.trunks;
  for (TrunkLevel& trunks : setup.trunks) {
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
  if (port >= ports_) {
    throw std::invalid_argument("the switch has no port " + std::to_string(port));
  }
  SwitchPortCounts sum;
  for (const auto& shard : shards_) add_counters(sum, shard->counters(port));
  return sum;
}

}  // namespace gradcube::dataplane
