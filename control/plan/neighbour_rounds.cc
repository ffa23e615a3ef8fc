#include "control/plan/neighbour_rounds.h"

#include <cstddef>

namespace gradcube::control {
namespace {

// The round in which the digits a < b of a switch meet. With n odd nobody is the last one, and who
// would meet it has a rest.
unsigned tournament_round(unsigned a, unsigned b, unsigned radix) {
  const unsigned rounds = radix % 2 == 0 ? radix - 1 : radix;
  return b == rounds ? 2 * a % rounds : (a + b) % rounds;
}

// The round of the cable from digit a to b in a ring. The one that closes an odd ring has its own.
unsigned ring_round(unsigned a, unsigned b, unsigned radix) {
  const bool closes = b == radix - 1 && a == 0 && radix > 2;
  if (closes) return radix % 2 == 0 ? 1 : 2;
  return a % 2;
}

bool are_joined(unsigned a, unsigned b, const Dimension& dimension) {
  switch (dimension.link) {
    case Link::switched:
      return true;
    case Link::adjacent:
      return b - a == 1 || b - a == dimension.radix - 1;
    case Link::uplink:
    case Link::memory:
      break;
  }
  return false;
}

}  // namespace

std::vector<std::vector<NeighbourLink>> neighbour_rounds(const Topology& topology) {
  std::vector<std::vector<NeighbourLink>> rounds;
  const AddressSpace& space = topology.space();
  for (unsigned level = 0; level < topology.levels(); ++level) {
    const Dimension& dimension = topology.dimensions()[level];
    const unsigned radix = space.radix(level);
    const std::size_t before = rounds.size();
    for (const ServerId first : topology.space().server_list()) {
      const unsigned a = space.digit(first, level);
      for (unsigned b = a + 1; b < radix; ++b) {
        if (!are_joined(a, b, dimension)) continue;
        if (space.is_absent(space.with_digit(first, level, b))) continue;
        const unsigned round = dimension.link == Link::switched
                                   ? tournament_round(a, b, radix)
                                   : ring_round(a, b, radix);
        if (rounds.size() <= before + round) rounds.resize(before + round + 1);
        rounds[before + round].push_back({level, first, space.with_digit(first, level, b)});
      }
    }
  }
  return rounds;
}

}  // namespace gradcube::control
