// Rounds whose gradients are accumulated, and rounds that apply what was: hub_exchange.h.

#include <algorithm>
#include <array>
#include <cmath>

#include "control/plan/base/byte_range.h"
#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

using aggregation::DataType;
using control::kUnitBytes;
using control::SegmentRange;

namespace {

// In an order that is the same for every instruction set, and lets each of them add four at a time.
// The square of a float is exact.
double sum_of_squares(const float* values, std::uint64_t count) {
  constexpr std::uint64_t kLanes = 4;
  std::array<double, kLanes> sums{};
  const auto add = [&](std::uint64_t lane, double value) { sums[lane] += value * value; };
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) add(lane, values[i + lane]);
  }
  for (std::uint64_t lane = 0; i < count; ++i, ++lane) add(lane, values[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

// Which bytes a segment of the chunk's range carries: of the chunk, of its norms, or HubNumbers.
SegmentRange HubExchange::carried(Stage stage, PushKind kind, SegmentRange range) {
  if (kind == PushKind::accumulated && stage == Stage::broadcast) {
    const auto units = static_cast<std::uint32_t>(control::units_of(range.bytes).count);
    return {range.begin / kUnitBytes * sizeof(float),
            static_cast<std::uint32_t>(units * sizeof(float))};
  }
  if (kind == PushKind::applied && stage == Stage::aggregation) {
    return {0, range.bytes == 0 ? 0 : static_cast<std::uint32_t>(sizeof(HubNumbers))};
  }
  return range;
}

// Where results begin that come from others.
std::uint8_t* HubExchange::results_of(const ChunkState& chunk, PushKind kind) {
  if (kind != PushKind::accumulated) return weights_of(chunk);
  return reinterpret_cast<std::uint8_t*>(norms_.data() + chunk.norms);
}

// An addition of the mean is a step of plain "sgd" with the rate -1.
void HubExchange::accumulate(const ChunkState& chunk, unsigned sources, SegmentRange range) {
  const aggregation::OptimizerSettings plain;
  const DataType type = type_of(chunk);
  const std::uint64_t count = range.bytes / aggregation::element_bytes(type);
  float* const sums = arrays_[kAccumulated] + state_at(chunk, range);
  context_.kernels.optimizers.optimize(type, optimizer_form(plain, context_.divisor))(
      {sums, nullptr, nullptr, rounded_.data()}, sources_.data(), sources, count,
      optimizer_step(plain, -1, 1, context_.divisor));
  const std::uint64_t unit = kUnitBytes / aggregation::element_bytes(type);
  float* norm = norms_.data() + chunk.norms + range.begin / kUnitBytes;
  for (std::uint64_t i = 0; i < count; i += unit, ++norm) {
    *norm = static_cast<float>(std::sqrt(sum_of_squares(sums + i, std::min(unit, count - i))));
  }
}

// As PyTorch: gradients are scaled, and rounded, before the optimizer sees them.
void HubExchange::apply(const ChunkState& chunk, SegmentRange range) {
  const KeyState& key = keys_[place_of(chunk).key];
  if (key.told.scale != 0) {
    const DataType type = type_of(chunk);
    const std::uint64_t count = range.bytes / aggregation::element_bytes(type);
    float* const sums = arrays_[kAccumulated] + state_at(chunk, range);
    for (std::uint64_t i = 0; i < count; ++i) sums[i] *= key.told.scale;
    const void* const source = sums;
    const aggregation::OptimizerForm form =
        optimizer_form(context_.model.settings_of(place_of(chunk).key), 1);
    context_.kernels.optimizers.optimize(DataType::float32, form)(arrays_at(chunk, range), &source,
                                                                  1, count, key.numbers);
    if (type != DataType::float32) write_rounded(chunk, range);
  }
  drop_accumulated(chunk, range);
}

void HubExchange::drop_accumulated(const ChunkState& chunk, SegmentRange range) {
  if (arrays_[kAccumulated] == nullptr) return;
  std::fill_n(arrays_[kAccumulated] + state_at(chunk, range),
              range.bytes / aggregation::element_bytes(type_of(chunk)), 0.0F);
}

void HubExchange::add_squares(ChunkState& chunk) const {
  chunk.squares =
      sum_of_squares(norms_.data() + chunk.norms, control::units_of(place_of(chunk).bytes).count);
}

double HubExchange::squares(std::uint32_t number) const {
  const KeyState& key = keys_[number];
  double sum = 0;
  for (std::uint32_t i = 0; i < key.chunks; ++i) sum += chunks_[key.first_chunk + i].squares;
  return sum;
}

}  // namespace gradcube::dataplane
