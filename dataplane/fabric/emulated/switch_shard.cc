#include "dataplane/fabric/emulated/switch_shard.h"

#include <algorithm>
#include <rte_prefetch.h>

#include "dataplane/fabric/frame_fields.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint16_t kBurst = 32;
// What one frame can become for its output: itself, its double and the late frames it lets go.
constexpr std::uint32_t kFramesPerFrame = 2 + ReorderBuffer::kCapacity;
constexpr std::int64_t kReorderPatience = 200'000;
constexpr std::uint64_t kMaxFramesToPass = 3;
constexpr std::uint64_t kMaxFlippedBits = 3;

// A generator for each port and shard out of the switch's one seed.
SeededRandom generator_of(std::uint64_t seed, std::uint16_t shard, std::size_t port) {
  SeededRandom mix(seed + (static_cast<std::uint64_t>(shard) << 32) + port);
  return SeededRandom(mix.next());
}

}  // namespace

SwitchShard::SwitchShard(const Setup& setup)
    : macs_(setup.macs),
      publisher_(setup.publisher),
      clones_(setup.clones),
      limited_(setup.profiles.front().limited()),
      queue_count_(setup.ports.front()->queues()),
      queue_reciprocal_(UINT64_MAX / queue_count_ + 1),
      serves_(queue_count_),
      impairments_(setup.ports.size()),
      counters_(setup.ports.size()),
      late_(setup.ports.size()) {
  for (std::uint16_t queue = setup.index; queue < queue_count_; queue += setup.shards) {
    queues_.push_back(setup.ports.front()->express_queue(queue));
    serves_[queue] = 1;
  }
  for (std::uint16_t queue = setup.index; queue < queue_count_; queue += setup.shards) {
    queues_.push_back(queue);
  }
  const auto rings = static_cast<std::uint32_t>(setup.ports.size() * queues_.size());
  room_needed_ = rings * kBurst * kFramesPerFrame;
  egress_.reserve(setup.ports.size());
  for (std::size_t port = 0; port < setup.ports.size(); ++port) {
    const LinkProfile& profile = setup.profiles[port];
    uplinks_.push_back(Uplink{setup.ports[port], LinkClock(profile.bits_per_second),
                              generator_of(setup.seed, setup.index, port)});
    // Over an unlimited link a round must always fit once the queue is half empty.
    const std::uint32_t frames =
        std::max(setup.egress_frames[port], limited_ ? 0 : 2 * room_needed_);
    egress_.emplace_back(setup.ports[port], profile, frames, queue_count_, clones_,
                         counters_[port]);
  }
  if (setup.trunks.empty()) return;
  trunks_ = std::make_unique<TrunkTree>(setup.trunks, setup.places, queue_count_, *macs_, clones_);
}

SwitchShard::~SwitchShard() {
  for (Uplink& uplink : uplinks_) rte_pktmbuf_free(uplink.on_wire);
}

unsigned SwitchShard::poll(std::int64_t now) {
  if (!started_) start(now);
  take_changes();
  if (holds_late_frames_) release_late_frames(now);
  unsigned moved = 0;
  if (limited_) {
    moved = impaired_ ? take_limited<true>(now) : take_limited<false>(now);
  } else if (every_output_has_room()) {
    moved = pass_unlimited(queues_, now);
  }
  for (EgressQueue& egress : egress_) moved += egress.deliver(now);
  return moved;
}

unsigned SwitchShard::poll_urgent(std::int64_t now) {
  if (limited_ || !every_output_has_room()) return 0;
  const unsigned taken = pass_unlimited(std::span(queues_).first(queues_.size() / 2), now);
  if (taken == 0) return 0;
  for (EgressQueue& egress : egress_) egress.deliver(now);
  return taken;
}

unsigned SwitchShard::pass_unlimited(std::span<const std::uint16_t> queues, std::int64_t now) {
  return impaired_ ? take_unlimited<true>(queues, now) : take_unlimited<false>(queues, now);
}

void SwitchShard::start(std::int64_t now) {
  for (Uplink& uplink : uplinks_) uplink.empty_at = now;
  started_ = true;
}

void SwitchShard::take_changes() {
  if (!publisher_->refresh(seen_version_, impairments_)) return;
  impaired_ = !std::all_of(impairments_.begin(), impairments_.end(),
                           [](const Impairments& port) { return port == Impairments{}; });
}

void SwitchShard::release_late_frames(std::int64_t now) {
  holds_late_frames_ = false;
  for (std::uint16_t out = 0; out < late_.size(); ++out) {
    late_[out].expire(now, [&](const ReorderBuffer::Held& held) {
      limited_ ? enqueue<true>(held.packet, out, held.queue, held.deadline)
               : enqueue<false>(held.packet, out, held.queue, held.deadline);
    });
    if (late_[out].next_deadline() != kNever) holds_late_frames_ = true;
  }
}

bool SwitchShard::every_output_has_room() const {
  return std::all_of(egress_.begin(), egress_.end(),
                     [this](const EgressQueue& egress) { return egress.room() >= room_needed_; });
}

template <bool kImpaired>
unsigned SwitchShard::take_unlimited(std::span<const std::uint16_t> queues, std::int64_t now) {
  unsigned taken = 0;
  for (std::uint16_t in = 0; in < uplinks_.size(); ++in) {
    for (const std::uint16_t queue : queues) {
      rte_mbuf* burst[kBurst];
      const std::uint16_t count = uplinks_[in].port->switch_receive(queue, burst, kBurst);
      for (std::uint16_t i = 0; i < count; ++i) {
        rte_prefetch0(rte_pktmbuf_mtod(burst[i], const void*));
      }
      for (std::uint16_t i = 0; i < count; ++i) {
        forward<kImpaired, false>(burst[i], in, queue, now);
      }
      taken += count;
    }
  }
  return taken;
}

// A limited link has one shard, which serves all queues.
bool SwitchShard::waits(const Uplink& uplink, std::uint16_t first_of_lane) const {
  for (std::uint16_t queue = 0; queue < queue_count_; ++queue) {
    if (!uplink.port->nothing_sent(static_cast<std::uint16_t>(first_of_lane + queue))) return true;
  }
  return false;
}

void SwitchShard::take_in_turn(Uplink& uplink, std::uint16_t first_of_lane) {
  for (std::uint16_t tried = 0; tried < queue_count_; ++tried) {
    const std::uint16_t queue = uplink.next_queue;
    uplink.next_queue = static_cast<std::uint16_t>(queue + 1 == queue_count_ ? 0 : queue + 1);
    uplink.on_wire_from = static_cast<std::uint16_t>(first_of_lane + queue);
    if (uplink.port->switch_receive(uplink.on_wire_from, &uplink.on_wire, 1) != 0) return;
  }
}

void SwitchShard::load_wire(Uplink& uplink, std::int64_t now) {
  uplink.on_wire = nullptr;
  const bool express_waits = waits(uplink, queue_count_);
  const bool plain_waits = waits(uplink, 0);
  if (!express_waits && !plain_waits) {
    uplink.arrival = kNever;
    uplink.empty_at = now;
    return;
  }
  const bool express = uplink.turn.is_express(express_waits, plain_waits);
  take_in_turn(uplink, express ? queue_count_ : 0);
  const std::uint32_t bytes = frame_bytes(uplink.on_wire);
  uplink.turn.count(express, bytes);
  uplink.arrival = uplink.wire.carry(uplink.empty_at, bytes + kWireOverheadBytes);
}

template <bool kImpaired>
unsigned SwitchShard::take_limited(std::int64_t now) {
  for (Uplink& uplink : uplinks_) {
    if (uplink.on_wire == nullptr) {
      load_wire(uplink, now);
    } else if (std::all_of(queues_.begin(), queues_.end(),
                           [&](std::uint16_t queue) { return uplink.port->nothing_sent(queue); })) {
      uplink.empty_at = now;
    }
  }
  // In the order of arrival over all ports: an output queue is as long as it would really be, even
  // when this round has to catch up with many frames.
  const auto budget = static_cast<unsigned>(uplinks_.size() * kBurst);
  unsigned taken = 0;
  for (; taken < budget; ++taken) {
    const auto first =
        std::min_element(uplinks_.begin(), uplinks_.end(),
                         [](const Uplink& a, const Uplink& b) { return a.arrival < b.arrival; });
    if (first->arrival > now) break;
    rte_mbuf* packet = first->on_wire;
    const std::uint16_t in_queue = first->on_wire_from;
    const std::int64_t arrival = first->arrival;
    pass_trunks<kImpaired>(arrival);
    load_wire(*first, now);
    forward<kImpaired, true>(packet, static_cast<std::uint16_t>(first - uplinks_.begin()), in_queue,
                             arrival);
  }
  // What the servers sent meanwhile comes first, where the budget left it for the next round.
  pass_trunks<kImpaired>(std::min(now, first_arrival()));
  return taken;
}

std::int64_t SwitchShard::first_arrival() const {
  std::int64_t first = kNever;
  for (const Uplink& uplink : uplinks_) first = std::min(first, uplink.arrival);
  return first;
}

template <bool kImpaired>
void SwitchShard::pass_trunks(std::int64_t until) {
  if (trunks_ == nullptr) return;
  trunks_->pass(until, [this](rte_mbuf* packet, std::uint16_t in, std::uint16_t out,
                              std::uint16_t queue, std::int64_t arrival) {
    reach_output<kImpaired, true>(packet, in, out, queue, arrival);
  });
}

std::uint16_t SwitchShard::receive_queue(const rte_mbuf* packet, std::uint16_t in_queue,
                                         SwitchPortCounters& counters) const {
  // thread mod queues by a multiplication with the queues' reciprocal (Lemire's fast remainder).
  const std::uint64_t low_bits = queue_reciprocal_ * thread_of(packet);
  const auto queue =
      static_cast<std::uint16_t>((static_cast<unsigned __int128>(low_bits) * queue_count_) >> 64);
  const std::uint16_t lane = in_queue < queue_count_ ? 0 : queue_count_;
  if (serves_[queue] != 0) return static_cast<std::uint16_t>(lane + queue);
  counters.resteered.add(1);
  return in_queue;
}

template <bool kImpaired, bool kLimited>
void SwitchShard::forward(rte_mbuf* packet, std::uint16_t in, std::uint16_t in_queue,
                          std::int64_t arrival) {
  const std::uint16_t out =
      has_ethernet_header(packet) ? macs_->find(destination_mac(packet)) : kUnknownMac;
  if (out == kUnknownMac) {
    counters_[in].unknown_mac.add(1);
    rte_pktmbuf_free(packet);
    return;
  }
  const std::uint16_t queue = receive_queue(packet, in_queue, counters_[out]);
  if constexpr (kLimited) {
    if (trunks_ != nullptr && trunks_->enter(packet, in, out, queue, arrival)) return;
  }
  reach_output<kImpaired, kLimited>(packet, in, out, queue, arrival);
}

template <bool kImpaired, bool kLimited>
void SwitchShard::reach_output(rte_mbuf* packet, std::uint16_t in, std::uint16_t out,
                               std::uint16_t queue, std::int64_t arrival) {
  if constexpr (kImpaired) {
    impair<kLimited>(packet, in, out, queue, arrival);
  } else {
    enqueue<kLimited>(packet, out, queue, arrival);
  }
}

template <bool kLimited>
void SwitchShard::enqueue(rte_mbuf* packet, std::uint16_t out, std::uint16_t queue,
                          std::int64_t arrival) {
  if constexpr (kLimited) {
    egress_[out].admit(packet, queue, arrival);
  } else {
    egress_[out].pass(packet, queue, arrival);
  }
}

template <bool kLimited>
void SwitchShard::impair(rte_mbuf* packet, std::uint16_t in, std::uint16_t out, std::uint16_t queue,
                         std::int64_t arrival) {
  SwitchPortCounters& counters = counters_[out];
  const Impairments& impairments = impairments_[in];
  const FrameFault fault = draw_fault(impairments, uplinks_[in].random);
  const bool is_long = impairments.mtu != 0 && packet->pkt_len > impairments.mtu + kEthernetBytes;
  const bool is_down = !impairments.up || !impairments_[out].up;
  if (is_down || fault.lost || is_long) {
    (fault.lost ? counters.dropped_loss
     : is_down  ? counters.dropped_down
                : counters.dropped_long)
        .add(1);
    rte_pktmbuf_free(packet);
    return;
  }
  SeededRandom details(fault.details);
  rte_mbuf* twin = nullptr;
  if (fault.duplicated) {
    twin = copy_frame(packet, clones_);
    (twin != nullptr ? counters.duplicated : counters.copy_failed).add(1);
  }
  if (fault.corrupted) packet = corrupted(packet, details, counters);
  const ReorderBuffer::Held late{packet, queue,
                                 static_cast<std::uint16_t>(1 + details.below(kMaxFramesToPass)),
                                 arrival + kReorderPatience};
  if (fault.reordered && late_[out].hold(late)) {
    holds_late_frames_ = true;
    counters.reordered.add(1);
  } else {
    enqueue<kLimited>(packet, out, queue, arrival);
    late_[out].passed([&](const ReorderBuffer::Held& held) {
      enqueue<kLimited>(held.packet, out, held.queue, arrival);
    });
  }
  if (twin != nullptr) enqueue<kLimited>(twin, out, queue, arrival);
}

rte_mbuf* SwitchShard::corrupted(rte_mbuf* packet, SeededRandom& details,
                                 SwitchPortCounters& counters) {
  // The original's payload lies in a trainer's memory and is not ours to write.
  rte_mbuf* copy = copy_frame(packet, clones_);
  if (copy == nullptr) {
    counters.copy_failed.add(1);
    return packet;
  }
  rte_pktmbuf_free(packet);
  const std::uint64_t bits = (copy->pkt_len - kMacBytes) * std::uint64_t{8};
  const std::uint64_t flips = 1 + details.below(kMaxFlippedBits);
  auto* bytes = rte_pktmbuf_mtod_offset(copy, std::uint8_t*, kMacBytes);
  std::uint64_t flipped[kMaxFlippedBits];
  for (std::uint64_t i = 0; i < flips;) {
    flipped[i] = details.below(bits);
    // The same bit twice would undo itself.
    if (std::find(flipped, flipped + i, flipped[i]) != flipped + i) continue;
    bytes[flipped[i] / 8] ^= static_cast<std::uint8_t>(1U << (flipped[i] % 8));
    ++i;
  }
  counters.corrupted.add(1);
  return copy;
}

std::int64_t SwitchShard::next_event() const {
  std::int64_t next = first_arrival();
  if (trunks_ != nullptr) next = std::min(next, trunks_->next_due());
  for (const EgressQueue& egress : egress_) next = std::min(next, egress.next_due());
  for (const ReorderBuffer& late : late_) next = std::min(next, late.next_deadline());
  return next;
}

}  // namespace gradcube::dataplane
