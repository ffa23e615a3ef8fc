// What a root without trainers saves and loads: planes of keys (control/checkpoint/hub_planes.h).

#include <cstring>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_planes.h"
#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

using aggregation::DataType;

// A hostile label: planes that there are not, or of a hub that has none.
bool HubExchange::may_come(const ChunkState& chunk, const HubLabel& label) const {
  if (shared::accumulates(label.kind) && !context_.accumulates) return false;
  if (!shared::is_of_plane(label.kind)) return label.plane == 0;
  const std::size_t states = aggregation::optimizer_states(context_.model.rule());
  return context_.rates_are_told && label.plane < control::hub_planes(type_of(chunk), states);
}

// Whether a contribution is of what the others contribute. Of what is loaded one trainer has the
// plane, and no other. A root without trainers has the numbers of what is applied from the first.
bool HubExchange::fits(ChunkState& chunk, const HubStream& from, const HubLabel& label,
                       const std::uint8_t* payload) {
  if (label.kind != chunk.kind || label.plane != chunk.plane) return false;
  if (chunk.kind == PushKind::applied && context_.trainers == 0) {
    HubNumbers told;
    std::memcpy(&told, payload, sizeof(told));
    if (told != keys_[place_of(chunk).key].told) return false;
  }
  if (chunk.kind != PushKind::loaded) return label.digest == chunk.digest;
  if (label.digest == 0) return chunk.loader != from.offset;
  if (chunk.digest == 0) {
    chunk.digest = label.digest;
    chunk.loader = static_cast<std::uint16_t>(from.offset);
  }
  return label.digest == chunk.digest && chunk.loader == from.offset;
}

// Puts it where results are sent from, unless it is there.
void HubExchange::save_plane(const ChunkState& chunk, SegmentRange range) {
  const DataType type = type_of(chunk);
  if (type == DataType::float32 || context_.trainers != 0) return;
  if (chunk.plane == 0) return write_rounded(chunk, range);
  const float* array = arrays_[control::array_of_plane(type, chunk.plane)] + state_at(chunk, range);
  control::read_halves(array, chunk.plane, range.bytes / aggregation::element_bytes(type),
                       weights_of(chunk) + range.begin);
}

// The weights in 16 bits, of those in float32.
void HubExchange::write_rounded(const ChunkState& chunk, SegmentRange range) {
  const DataType type = type_of(chunk);
  const std::uint64_t elements = range.bytes / aggregation::element_bytes(type);
  const std::uint64_t state = state_at(chunk, range);
  std::uint8_t* to = weights_of(chunk) + range.begin;
  const auto write = [&](const auto& round) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      const std::uint16_t rounded = round(arrays_[0][state + i]);
      std::memcpy(to + i * sizeof(rounded), &rounded, sizeof(rounded));
    }
  };
  if (type == DataType::float16) {
    write([](float value) { return aggregation::float32_to_float16(value); });
  } else {
    write([](float value) { return aggregation::float32_to_bfloat16(value); });
  }
}

void HubExchange::load_plane(ChunkState& chunk, unsigned w, std::uint32_t position,
                             SegmentRange range) {
  if (context_.trainers != 0) return;
  if (chunk.digest == 0) return disagree(chunk);  // nobody has it
  const unsigned first = schedule_.step(w).sources_in(control::Stage::aggregation).first;
  const std::uint8_t* values = contribution(chunk, w, chunk.loader - first, position);
  const DataType type = type_of(chunk);
  keys_[place_of(chunk).key].steps = chunk.digest - 1;
  if (stale_.has_value()) stale_->steps(index_[chunk.number]) = chunk.digest - 1;
  if (chunk.plane == 0) {
    std::memcpy(weights_of(chunk) + range.begin, values, range.bytes);
    return drop_accumulated(chunk, range);
  }
  float* array = arrays_[control::array_of_plane(type, chunk.plane)] + state_at(chunk, range);
  if (type == DataType::float32) {
    std::memcpy(array, values, range.bytes);
  } else {
    control::write_halves(array, chunk.plane, range.bytes / aggregation::element_bytes(type),
                          values);
  }
}

// Where the chunk's results begin: its norms; or the weights, but of float32 an array of state
// where it lies.
const std::uint8_t* HubExchange::spread_values(const ChunkState& chunk,
                                               const HubLabel& label) const {
  if (label.kind == PushKind::accumulated) {
    return reinterpret_cast<const std::uint8_t*>(norms_.data() + chunk.norms);
  }
  if (label.plane == 0 || context_.trainers != 0 || type_of(chunk) != DataType::float32) {
    return weights_of(chunk);
  }
  const float* array = arrays_[control::array_of_plane(DataType::float32, label.plane)];
  return reinterpret_cast<const std::uint8_t*>(array + chunk.state) - shape_of(chunk).owned.begin;
}

}  // namespace gradcube::dataplane
