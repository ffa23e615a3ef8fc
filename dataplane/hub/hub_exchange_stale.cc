// The root of an asynchronous hub: what it does with gradients of one server at a time.
//
// What a server contributes to a chunk lies in a slot until it may be stepped with. The new weights
// then take its place, as the server's results; so do the results of a round of all servers, in a
// slot for each. Others' steps do not change what is on its way.

#include <bit>
#include <cstring>
#include <utility>

#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

using control::SegmentRange;

namespace {

constexpr unsigned kStep = 0;  // of the plan: there is one

}  // namespace

unsigned HubExchange::place_of_source(unsigned offset) const {
  return offset - schedule_.step(kStep).sources_in(Stage::aggregation).first;
}

// Rounds of one server ---------------------------------------------------------

bool HubExchange::take_alone(ChunkState& chunk, const HubStream& from, const HubLabel& label,
                             const std::uint8_t* payload, std::uint32_t bytes) {
  const HubShape& shape = shape_of(chunk);
  const unsigned place = place_of_source(from.offset);
  StalePeers::Peer& peer = stale_->peer(index_[chunk.number], place);
  if (label.round == on_wire(peer.opened + 1) && may_open_alone(chunk, from.offset)) {
    open_alone(chunk, from.offset, label.digest);
  } else if (label.round != on_wire(peer.opened) || !peer.alone) {
    return false;
  }
  const std::uint64_t arrived = chunk.bits + shape.arrived_bit(kStep, place, label.position);
  if (bit(arrived)) return false;
  if (label.digest != peer.digest) {
    disagree(chunk);
    return false;
  }
  set_bit(arrived);
  if (bytes != 0) {
    LandingSlots& pool = pools_[shape.pool[kStep]];
    std::uint32_t& slot = landed_[landing_of(chunk, kStep, place, label.position)];
    slot = pool.take();
    std::memcpy(pool.at(slot), payload, bytes);
  }
  if (!stale_->may_step(index_[chunk.number], peer)) return true;
  step_alone(chunk, from.offset, label.position);
  if (peer.done == peer.opened) step_with_held(chunk);
  return true;
}

// By then the server has all results of its last round, or could not have pushed again.
bool HubExchange::may_open_alone(const ChunkState& chunk, unsigned offset) const {
  const std::size_t index = index_[chunk.number];
  const StalePeers::Peer& peer = stale_->peer(index, place_of_source(offset));
  const bool together = peer.opened != 0 && !peer.alone;  // the last one
  if (peer.opened == 0 || (together && chunk.ended != chunk.pushes)) return false;
  const HubSendStream& results = sends_[number_of({Stage::broadcast, kStep, offset})];
  return peer.done == peer.opened && results.sent[index] == shape_of(chunk).length[kStep];
}

void HubExchange::open_alone(ChunkState& chunk, unsigned offset, std::uint32_t digest) {
  const HubShape& shape = shape_of(chunk);
  const std::size_t index = index_[chunk.number];
  const unsigned place = place_of_source(offset);
  StalePeers::Peer& peer = stale_->peer(index, place);
  forget_results(chunk, offset);
  ++peer.opened;
  peer.stepped = 0;
  peer.digest = digest;
  peer.alone = true;
  peer.has_numbers = false;
  for (std::uint32_t position = 0; position < shape.length[kStep]; ++position) {
    clear_bit(chunk.bits + shape.arrived_bit(kStep, place, position));
  }
  sends_[number_of({Stage::broadcast, kStep, offset})].reset(index);
}

// The slots of the last round's results.
void HubExchange::forget_results(ChunkState& chunk, unsigned offset) {
  const HubShape& shape = shape_of(chunk);
  const unsigned place = place_of_source(offset);
  for (std::uint32_t position = 0; position < shape.length[kStep]; ++position) {
    const std::uint64_t landing = landing_of(chunk, kStep, place, position);
    stale_->set_stepped(landing, false);
    if (range_of(chunk, offset, position).bytes == 0) continue;
    pools_[shape.pool[kStep]].give_back(landed_[landing]);
  }
}

SegmentRange HubExchange::range_of(const ChunkState& chunk, unsigned offset,
                                   std::uint32_t position) const {
  const auto part =
      layout_of(chunk).part_received(schedule_, Stage::aggregation, kStep, offset, position);
  return layout_of(chunk).segment(schedule_, kStep, part.offset, part.position);
}

void HubExchange::step_alone(ChunkState& chunk, unsigned offset, std::uint32_t position) {
  const std::size_t index = index_[chunk.number];
  const unsigned place = place_of_source(offset);
  StalePeers::Peer& peer = stale_->peer(index, place);
  if (!peer.has_numbers) {
    peer.has_numbers = true;
    peer.numbers =
        step_of(place_of(chunk).key, std::bit_cast<float>(peer.digest), ++stale_->steps(index));
  }
  const std::uint64_t landing = landing_of(chunk, kStep, place, position);
  const SegmentRange range = range_of(chunk, offset, position);
  if (range.bytes != 0) {
    std::uint8_t* slot = pools_[shape_of(chunk).pool[kStep]].at(landed_[landing]);
    sources_[0] = slot;
    step(chunk, 1, range, peer.numbers);
    std::memcpy(slot, weights_of(chunk) + range.begin, range.bytes);
  }
  stale_->set_stepped(landing, true);
  if (++peer.stepped == shape_of(chunk).length[kStep]) ++peer.done;
  advance_to(chunk, {Stage::broadcast, kStep, offset});
}

// A server has caught up: what others are ahead of it may be less now.
void HubExchange::step_with_held(ChunkState& chunk) {
  const control::Offsets& sources = schedule_.step(kStep).sources_in(Stage::aggregation);
  for (bool any = true; any;) {
    any = false;
    for (unsigned offset = sources.first; offset < sources.end; ++offset) {
      const unsigned place = place_of_source(offset);
      const StalePeers::Peer& peer = stale_->peer(index_[chunk.number], place);
      if (peer.done == peer.opened || !stale_->may_step(index_[chunk.number], peer)) continue;
      for (std::uint32_t position = 0; position < shape_of(chunk).length[kStep]; ++position) {
        const bool here = bit(chunk.bits + shape_of(chunk).arrived_bit(kStep, place, position));
        if (!here || stale_->stepped(landing_of(chunk, kStep, place, position))) continue;
        step_alone(chunk, offset, position);
      }
      any = any || peer.done == peer.opened;
    }
  }
}

// Rounds of all ----------------------------------------------------------------

// In the place of the contributions of all, which are used now.
void HubExchange::keep_results(ChunkState& chunk, std::uint32_t position, SegmentRange range) {
  LandingSlots& pool = pools_[shape_of(chunk).pool[kStep]];
  const HubLabel label{.kind = chunk.kind, .plane = chunk.plane};
  const std::uint8_t* values = spread_values(chunk, label) + range.begin;
  const unsigned sources = schedule_.step(kStep).sources_in(Stage::aggregation).count();
  for (unsigned place = 0; place < sources; ++place) {
    const std::uint64_t landing = landing_of(chunk, kStep, place, position);
    if (landing == arriving_.landing) landed_[landing] = pool.take();
    std::memcpy(pool.at(landed_[landing]), values, range.bytes);
  }
}

// Whether a contribution of anything but gradients may come: of a round that all servers have
// together, which begins when all have done as many.
bool HubExchange::is_together(ChunkState& chunk, const HubStream& from, const HubLabel& label) {
  StalePeers::Peer& peer = stale_->peer(index_[chunk.number], place_of_source(from.offset));
  if (label.round != on_wire(peer.opened) || peer.opened == 0) {
    if (label.round != on_wire(peer.opened + 1) || !may_open_together(chunk, peer)) return false;
    open_together(chunk, label.kind);
  } else if (peer.alone) {
    return false;
  }
  // It has the results of the round before, or could not have pushed again. To the others they may
  // have to be sent once more.
  if (std::exchange(peer.has_earlier_results, false)) forget_results(chunk, from.offset);
  return true;
}

bool HubExchange::may_open_together(const ChunkState& chunk, const StalePeers::Peer& peer) {
  if (!stale_->are_even(index_[chunk.number])) return false;
  return peer.opened == 0 || (chunk.ended == chunk.pushes && all_sent(chunk, Stage::broadcast));
}

void HubExchange::open_together(ChunkState& chunk, PushKind kind) {
  const std::size_t index = index_[chunk.number];
  const std::uint32_t before = stale_->peers(index).front().opened;
  chunk.opened = chunk.pushes = chunk.spread = chunk.ended = before;
  for (StalePeers::Peer& each : stale_->peers(index)) {
    each.alone = false;
    each.has_earlier_results = before != 0;
    each.done = ++each.opened;
  }
  if (kind == PushKind::weights) stale_->steps(index) = 0;
}

// To whom results of a round of its own go; null where all have a round together.
const StalePeers::Peer* HubExchange::alone(const ChunkState& chunk, const HubStream& to) const {
  if (!stale_.has_value() || to.stage != Stage::broadcast) return nullptr;
  const StalePeers::Peer& peer = stale_->peer(index_[chunk.number], place_of_source(to.offset));
  return peer.alone ? &peer : nullptr;
}

const std::uint8_t* HubExchange::stale_result(const ChunkState& chunk, unsigned offset,
                                              std::uint32_t position) const {
  const std::uint64_t landing = landing_of(chunk, kStep, place_of_source(offset), position);
  return pools_[shape_of(chunk).pool[kStep]].at(landed_[landing]);
}

}  // namespace gradcube::dataplane
