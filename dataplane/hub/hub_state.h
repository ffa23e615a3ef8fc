// What a hub's executor keeps of the elements that its server owns, beside their weights: float32
// arrays, whose memory is the server's (dataplane/engine/hub/hub_memory.h), so that trainers can
// read it.
//
// Arrays are numbered: 0 has the weights themselves in float32, where their own type has 16 bits; 1
// and 2 are the optimizer's state (aggregation/optimizer.h); 3 is what is accumulated, if the hub
// accumulates, and is not saved. What is not needed is not there.
#ifndef GRADCUBE_DATAPLANE_HUB_HUB_STATE_H_
#define GRADCUBE_DATAPLANE_HUB_HUB_STATE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gradcube::dataplane {

inline constexpr std::size_t kHubArrays = 3;  // that are saved
inline constexpr std::size_t kAccumulated = kHubArrays;

// The arrays of one executor, one behind the other.
struct HubStateShape {
  std::uint64_t owned = 0;   // elements of its chunks whose weights are stepped here
  std::uint64_t ranges = 0;  // of keys that these are: at most one of each chunk
  std::array<bool, kHubArrays + 1> has{};

  // From the begin of an array to that of the next: a multiple of 64 bytes.
  std::uint64_t stride() const { return (owned + 15) / 16 * 16; }
  // Of all.
  std::uint64_t elements() const {
    return stride() * static_cast<std::uint64_t>(std::count(has.begin(), has.end(), true));
  }
};

// Elements of a key that a server owns, and where its arrays have them; null where there is none.
struct HubOwnedRange {
  std::uint32_t key = 0;
  std::uint64_t first_element = 0;
  std::uint64_t elements = 0;
  std::array<const float*, kHubArrays> arrays{};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_HUB_STATE_H_
