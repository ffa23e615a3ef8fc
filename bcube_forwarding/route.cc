#include "bcube_forwarding/route.h"

#include <algorithm>

namespace gradcube::bcube {

unsigned most_hops(const AddressSpace& space) {
  constexpr unsigned kDetour = 2;
  return space.levels() == 1 ? 1 : std::min(kMaxLevels, space.levels() + kDetour);
}

ServerId difference(const AddressSpace& space, ServerId from, ServerId to) {
  ServerId differs = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned radix = space.radix(level);
    const unsigned by = (space.digit(to, level) + radix - space.digit(from, level)) % radix;
    differs = space.with_digit(differs, level, by);
  }
  return differs;
}

Route shortest_route(const AddressSpace& space, ServerId from, ServerId to) {
  const ServerId differs = difference(space, from, to);
  Route ascending;
  unsigned first = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned by = space.digit(differs, level);
    if (by == 0) continue;
    ascending.append(
        {static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(space.digit(to, level))});
    // Where all radices are 2, only the levels tell one difference from another.
    first += by + level;
  }
  Route route;
  for (unsigned i = 0; i < ascending.size(); ++i) {
    route.append(ascending[(first + i) % ascending.size()]);
  }
  return route;
}

}  // namespace gradcube::bcube
