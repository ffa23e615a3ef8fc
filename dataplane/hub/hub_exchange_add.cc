// The arithmetic of a hub's exchange: from contributions to sums, and to weights.

#include <algorithm>
#include <cstring>

#include "control/plan/base/step_pattern.h"
#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

using aggregation::DataType;
using control::ScheduleStep;
using control::StreamPositions;

namespace {

float widened(DataType type, const std::uint8_t* value) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, value, sizeof(bits));
  return type == DataType::float16 ? aggregation::float16_to_float32(bits)
                                   : aggregation::bfloat16_to_float32(bits);
}

}  // namespace

// Whether what position q of the send stream (w, r) is, or of the receive stream, has been added up
// here in the steps before.
bool HubExchange::has_sum(const ChunkState& chunk, unsigned w, unsigned r,
                          std::uint32_t position) const {
  if (w == 0) return chunk.pushed;
  const std::uint32_t before = layout_of(chunk).positions().at_previous_step(w, r, position);
  return bit(chunk.bits +
             shape_of(chunk).reduced_bit(
                 w - 1, static_cast<std::uint32_t>(layout_of(chunk).sums(w - 1)) + before));
}

void HubExchange::reduce_if_complete(ChunkState& chunk, unsigned w, std::uint32_t position) {
  const HubShape& shape = shape_of(chunk);
  const control::CollectiveLayout& layout = shape.layout;
  for (;;) {
    const ScheduleStep& step = schedule_.step(w);
    const unsigned sources = step.sources_in(Stage::aggregation).count();
    if (counts_[chunk.counts + shape.counts_at[w] + position] != sources) return;
    const auto [r, q, round] = layout.part_received(schedule_, Stage::aggregation, w, 0, position);
    const std::uint64_t reduced = chunk.bits + shape.reduced_bit(w, position);
    if (!has_sum(chunk, w, r, q) || bit(reduced)) return;
    const SegmentRange range = layout.segment(schedule_, w, r, q);
    const bool is_last = w == schedule_.last_step() && round + 1 == step.rounds;
    if (range.bytes != 0) {
      combine(chunk, w, position, range, is_last);
      if (stale_.has_value()) {
        keep_results(chunk, position, range);
      } else {
        give_back(chunk, w, position);
      }
    }
    set_bit(reduced);
    ++chunk.reductions;
    if (round + 1 < step.rounds) return advance(chunk, Stage::aggregation, w);
    if (is_last) return advance_results(chunk, w);
    advance(chunk, Stage::aggregation, w + 1);
    const StreamPositions::NextStep next = layout.positions().at_next_step(w, q);
    ++w;
    if (!schedule_.step(w).sums) return;
    if (schedule_.step(w).is_ring()) return enter_ring(chunk, w, next);
    if (!next.divided && next.offset != 0) return;
    position = next.position;
  }
}

// What came round before the sum that it waits for (as in PlanExecutor).
void HubExchange::enter_ring(ChunkState& chunk, unsigned w, const StreamPositions::NextStep& sum) {
  const std::uint32_t length = layout_of(chunk).round_length(w);
  const unsigned rounds = schedule_.step(w).rounds;
  if (sum.divided) {
    for (unsigned t = 0; t < rounds; ++t) {
      reduce_if_complete(chunk, w, sum.position + t * length);
    }
  } else if (sum.offset < rounds) {
    reduce_if_complete(chunk, w, sum.position + (rounds - 1 - sum.offset) * length);
  }
}

// The slots of what has been added.
void HubExchange::give_back(const ChunkState& chunk, unsigned w, std::uint32_t position) {
  const unsigned sources = schedule_.step(w).sources_in(Stage::aggregation).count();
  LandingSlots& pool = pools_[shape_of(chunk).pool[w]];
  for (unsigned place = 0; place < sources; ++place) {
    const std::uint64_t landing = landing_of(chunk, w, place, position);
    if (landing != arriving_.landing) pool.give_back(landed_[landing]);
  }
}

void HubExchange::combine(ChunkState& chunk, unsigned w, std::uint32_t position, SegmentRange range,
                          bool is_last) {
  const unsigned sources = find_sources(chunk, w, position, range);
  if (chunk.kind == PushKind::saved) return save_plane(chunk, range);
  if (chunk.kind == PushKind::loaded) return load_plane(chunk, w, position, range);
  if (chunk.kind == PushKind::applied) {
    if (is_last) apply(chunk, range);
    return;
  }
  if (!shared::has_gradients(chunk.kind)) {
    // All have the same, or only this server has what is right.
    const bool has_own = context_.trainers != 0;
    if (is_last) assign(chunk, has_own ? own_values(chunk) + range.begin : sources_[0], range);
    return;
  }
  if (is_last && chunk.kind == PushKind::accumulated) return accumulate(chunk, sources, range);
  if (is_last) return step(chunk, sources, range, keys_[place_of(chunk).key].numbers);
  const DataType type = type_of(chunk);
  const std::size_t count = range.bytes / aggregation::element_bytes(type);
  context_.kernels.reduce(type, aggregation::Operation::sum)(own_values(chunk) + range.begin,
                                                             sources_.data(), sources, count);
}

// What is added, in the order of addition.
unsigned HubExchange::find_sources(ChunkState& chunk, unsigned w, std::uint32_t position,
                                   SegmentRange range) {
  const ScheduleStep& step = schedule_.step(w);
  const unsigned first = step.sources_in(Stage::aggregation).first;
  const std::uint8_t* own = context_.trainers == 0 ? nullptr : own_values(chunk) + range.begin;
  if (step.is_ring()) {
    sources_[0] = contribution(chunk, w, 0, position);
    sources_[1] = own;
    return 2;
  }
  unsigned count = 0;
  for (unsigned i = 0; i < step.participants; ++i) {
    const unsigned r = control::step_pattern::summand(step.radix, step.digit, i);
    if (r != 0) {
      sources_[count++] = contribution(chunk, w, r - first, position);
    } else if (own != nullptr) {
      sources_[count++] = own;
    }
  }
  return count;
}

// The first trainer's buffer gets the sum of all of this server.
void HubExchange::add_local(const ChunkState& chunk) {
  if (context_.trainers < 2 || !shared::has_gradients(chunk.kind)) return;
  const DataType type = type_of(chunk);
  const std::size_t size = aggregation::element_bytes(type);
  const control::hub::Chunk& place = place_of(chunk);
  const HubPush& push = keys_[place.key].push;
  for (unsigned i = 0; i < context_.trainers; ++i) {
    sources_[i] = push.buffers[i] + place.first_element * size;
  }
  context_.kernels.reduce(type, aggregation::Operation::sum)(own_values(chunk), sources_.data(),
                                                             context_.trainers, place.elements);
}

aggregation::OptimizerArrays HubExchange::arrays_at(const ChunkState& chunk,
                                                    SegmentRange range) const {
  const std::uint64_t state = state_at(chunk, range);
  std::uint8_t* weights = weights_of(chunk) + range.begin;
  const bool whole = type_of(chunk) == DataType::float32;
  return {.weights = whole ? reinterpret_cast<float*>(weights) : arrays_[0] + state,
          .first = arrays_[1] == nullptr ? nullptr : arrays_[1] + state,
          .second = arrays_[2] == nullptr ? nullptr : arrays_[2] + state,
          .rounded = whole ? nullptr : weights};
}

// PHub, section 3.2.2: what aggregates a chunk optimizes it.
void HubExchange::step(ChunkState& chunk, unsigned sources, SegmentRange range,
                       const aggregation::OptimizerStep& numbers) {
  const DataType type = type_of(chunk);
  const aggregation::OptimizerForm form = aggregation::optimizer_form(
      context_.model.settings_of(place_of(chunk).key), context_.divisor);
  context_.kernels.optimizers.optimize(type, form)(
      arrays_at(chunk, range), sources_.data(), sources,
      range.bytes / aggregation::element_bytes(type), numbers);
}

void HubExchange::assign(const ChunkState& chunk, const void* values, SegmentRange range) {
  const DataType type = type_of(chunk);
  const std::size_t size = aggregation::element_bytes(type);
  const std::uint64_t state = state_at(chunk, range);
  std::memcpy(weights_of(chunk) + range.begin, values, range.bytes);
  drop_accumulated(chunk, range);
  if (chunk.kind == PushKind::restored) return restore(chunk, range);
  for (std::size_t i = 1; i < kHubArrays; ++i) {
    if (arrays_[i] != nullptr) std::fill_n(arrays_[i] + state, range.bytes / size, 0.0F);
  }
  if (type == DataType::float32) return;
  const auto* from = static_cast<const std::uint8_t*>(values);
  for (std::size_t i = 0; i < range.bytes / size; ++i) {
    arrays_[0][state + i] = widened(type, from + i * size);
  }
}

void HubExchange::restore(const ChunkState& chunk, SegmentRange range) {
  const std::size_t size = aggregation::element_bytes(type_of(chunk));
  const std::uint64_t state = state_at(chunk, range);
  const std::uint64_t element = place_of(chunk).first_element + range.begin / size;
  for (std::size_t i = 0; i < kHubArrays; ++i) {
    const float* from = keys_[place_of(chunk).key].push.arrays[i];
    if (arrays_[i] == nullptr || from == nullptr) continue;
    std::memcpy(arrays_[i] + state, from + element, range.bytes / size * sizeof(float));
  }
}

}  // namespace gradcube::dataplane
