// What the files kernels_<instruction set>.cc share of the portable lanes, for types that the
// vectors of an instruction set do nothing for. In an unnamed namespace, as reduce_loop.h says.
#ifndef GRADCUBE_AGGREGATION_SCALAR_LANES_H_
#define GRADCUBE_AGGREGATION_SCALAR_LANES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gradcube::aggregation {
namespace {

template <typename Element>
Element load_element(const std::byte* from) {
  Element element;
  std::memcpy(&element, from, sizeof(element));
  return element;
}

template <typename Element>
void store_element(std::byte* to, Element element) {
  std::memcpy(to, &element, sizeof(element));
}

// One field per kStride bits above the index: reproducible.h.
template <typename Unsigned, typename Signed, unsigned kIndexBits, unsigned kStride>
struct IndexedLanes {
  using Vector = Unsigned;
  static constexpr std::size_t kLanes = 1;
  static constexpr std::size_t kElementBytes = sizeof(Unsigned);
  static constexpr Unsigned kIndex = (Unsigned{1} << kIndexBits) - 1;

  static Vector load(const std::byte* from) { return load_element<Unsigned>(from); }
  static void store(std::byte* to, Vector value) { store_element(to, value); }
  // The fields at a higher index: those that lie below it are dropped. Half of the last kept place
  // is added first, because what a negative field has borrowed from the one above must go back.
  static Vector aligned(Vector value, Unsigned index) {
    const auto steps = static_cast<unsigned>(index - (value & kIndex));
    const unsigned shift = (steps < 3 ? steps : 3) * kStride;
    const Unsigned biased = (value & ~kIndex) + (Unsigned{1} << (shift + kIndexBits - 1));
    return static_cast<Unsigned>(static_cast<Signed>(biased) >> shift) & ~kIndex;
  }
  static Vector sum(Vector acc, Vector x) {
    const Unsigned one = acc & kIndex;
    const Unsigned other = x & kIndex;
    const Unsigned index = one < other ? other : one;
    return aligned(acc, index) + aligned(x, index) + index;
  }
};

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

using Sum64 = IndexedLanes<std::uint64_t, std::int64_t, 5, 19>;
using Sum128 = IndexedLanes<Unsigned128, Signed128, 8, 39>;

}  // namespace
}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_SCALAR_LANES_H_
