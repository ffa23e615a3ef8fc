#include "control/hub/partition.h"

#include <algorithm>
#include <numeric>

namespace gradcube::control::hub {
namespace {

struct Bin {
  std::uint64_t load = 0;
  unsigned weight = 1;
  unsigned number = 0;
};

}  // namespace

std::vector<unsigned> divide_longest_first(std::span<const std::uint64_t> sizes,
                                           std::span<const unsigned> weights) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<Bin> bins;
  for (const unsigned weight : weights) {
    bins.push_back({.weight = weight, .number = static_cast<unsigned>(bins.size())});
  }
  std::vector<unsigned> result(sizes.size());
  for (const std::size_t piece : order) {
    Bin* least = nullptr;
    for (Bin& bin : bins) {
      // (load + size) / weight, compared without a division.
      if (least == nullptr ||
          (bin.load + sizes[piece]) * least->weight < (least->load + sizes[piece]) * bin.weight) {
        least = &bin;
      }
    }
    least->load += sizes[piece];
    result[piece] = least->number;
  }
  return result;
}

}  // namespace gradcube::control::hub
