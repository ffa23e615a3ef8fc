// What a hub's exchange has in memory, and what it says before that it will need.

#include <map>

#include "control/plan/base/byte_range.h"
#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

using aggregation::DataType;

namespace {

std::uint64_t landing_bytes(const HubShape& shape) {
  std::uint64_t bytes = shape.landing_places * sizeof(std::uint32_t);
  for (unsigned w = 0; w < control::kMaxSteps; ++w) {
    bytes += std::uint64_t{shape.landings[w]} * (shape.slot[w] + sizeof(std::uint32_t));
  }
  return bytes;
}

}  // namespace

HubNeeds HubExchange::needs(const HubExchangeContext& context) {
  const control::ThreadSchedule schedule(context.plan, context.rank, context.execution.thread,
                                         kWholeChunk);
  const std::vector<control::HubKey>& keys = context.model.keys();
  const auto& all_chunks = context.model.chunks();
  std::map<std::uint64_t, HubShape> shapes;
  std::size_t streams = 0;
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    streams += control::kStages * schedule.step(w).peers;
  }
  HubNeeds needs;
  needs.bytes = keys.size() * (sizeof(KeyState) + 2 * sizeof(std::uint32_t)) +
                all_chunks.size() * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < aggregation::optimizer_states(context.model.rule()); ++i) {
    needs.state.has[1 + i] = true;
  }
  needs.state.has[kAccumulated] = context.accumulates;
  for (const std::uint32_t number : context.execution.chunks) {
    const control::hub::Chunk& place = all_chunks[number];
    const HubShape& shape = shapes
                                .try_emplace(place.bytes, schedule, place.bytes,
                                             context.segment_bytes, context.block_bytes)
                                .first->second;
    const DataType type = keys[place.key].type;
    needs.state.owned += shape.owned.size() / aggregation::element_bytes(type);
    needs.state.ranges += shape.owned.size() == 0 ? 0 : 1;
    needs.state.has[0] = needs.state.has[0] || type != DataType::float32;
    needs.bytes += sizeof(ChunkState) + streams * 3 * sizeof(std::uint32_t) + shape.bits / 8 +
                   shape.counts * sizeof(std::uint16_t) + landing_bytes(shape);
    if (context.accumulates) {
      needs.bytes += control::units_of(place.bytes).count * sizeof(float);
    }
    if (context.staleness.has_value() && context.trainers == 0) {
      needs.bytes += StalePeers::needs(1, schedule.step(0).peers, shape.landing_places);
    }
  }
  if (context.accumulates && needs.state.has[0]) needs.bytes += context.segment_bytes;
  return needs;
}

HubOwnedRange HubExchange::owned_of(const ChunkState& chunk) const {
  const control::hub::Chunk& place = place_of(chunk);
  const std::size_t size = aggregation::element_bytes(type_of(chunk));
  const control::ByteRange owned = shape_of(chunk).owned;
  HubOwnedRange range{place.key, place.first_element + owned.begin / size, owned.size() / size, {}};
  for (std::size_t i = 0; i < kHubArrays; ++i) {
    const bool whole = i == 0 && type_of(chunk) == DataType::float32;
    if (arrays_[i] != nullptr && !whole) range.arrays[i] = arrays_[i] + chunk.state;
  }
  return range;
}

std::uint64_t HubExchange::memory() const {
  const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
  std::uint64_t total = bytes(chunks_) + bytes(keys_) + bytes(index_) + bytes(bits_) +
                        bytes(counts_) + bytes(landed_) + bytes(beginning_.keys) +
                        bytes(ended_.keys) + bytes(norms_) + bytes(rounded_);
  for (const LandingSlots& pool : pools_) total += pool.bytes();
  if (stale_.has_value()) total += stale_->memory();
  for (const HubSendStream& stream : sends_) {
    total += bytes(stream.ready) + bytes(stream.sent) + bytes(stream.queue);
  }
  return total;
}

}  // namespace gradcube::dataplane
