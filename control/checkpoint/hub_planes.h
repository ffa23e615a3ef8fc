// The planes of a hub's key: its weights and its optimizer's state as arrays that are as long, in
// bytes, as the key's gradients. As such they travel between an aggregator, which has no trainer
// that could read or write a file, and the trainers of its job (docs/hub.md).
//
// Plane 0 is the weights in the key's own type. The others are parts of the float32 arrays that the
// aggregator keeps (dataplane/hub/hub_state.h):
//
//     float32   plane p is array p: 1 and 2, the optimizer's state
//     16 bits   planes 1 + 2a and 2 + 2a are the low and the high halves of array a's elements:
//               of 0, the weights in float32, and of 1 and 2
//
// All functions here are pure. Any thread may call them.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_HUB_PLANES_H_
#define GRADCUBE_CONTROL_CHECKPOINT_HUB_PLANES_H_

#include <bit>
#include <cstdint>
#include <cstring>

#include "aggregation/element.h"

namespace gradcube::control {

inline constexpr unsigned kMostHubPlanes = 7;

// states: the optimizer's arrays.
constexpr unsigned hub_planes(aggregation::DataType type, std::size_t states) {
  const auto arrays = static_cast<unsigned>(states);
  return aggregation::element_bytes(type) == sizeof(float) ? 1 + arrays : 1 + 2 * (1 + arrays);
}

// Which array a plane, but 0, is of; and of 16 bits which half.
constexpr unsigned array_of_plane(aggregation::DataType type, unsigned plane) {
  return aggregation::element_bytes(type) == sizeof(float) ? plane : (plane - 1) / 2;
}
constexpr unsigned shift_of_plane(unsigned plane) { return plane % 2 == 1 ? 0 : 16; }

// The halves of elements in a plane of a key of 16 bits. `plane` needs no alignment.
inline void read_halves(const float* array, unsigned plane, std::uint64_t elements, void* to) {
  auto* out = static_cast<std::uint8_t*>(to);
  for (std::uint64_t i = 0; i < elements; ++i) {
    const auto half =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(array[i]) >> shift_of_plane(plane));
    std::memcpy(out + i * sizeof(half), &half, sizeof(half));
  }
}
inline void write_halves(float* array, unsigned plane, std::uint64_t elements, const void* from) {
  const auto* in = static_cast<const std::uint8_t*>(from);
  const unsigned shift = shift_of_plane(plane);
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, in + i * sizeof(half), sizeof(half));
    const std::uint32_t others = std::bit_cast<std::uint32_t>(array[i]) & ~(0xffffU << shift);
    array[i] = std::bit_cast<float>(others | std::uint32_t{half} << shift);
  }
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_HUB_PLANES_H_
