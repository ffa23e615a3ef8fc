#include "bcube_forwarding/route.h"

#include <algorithm>

namespace gradcube::bcube {

unsigned most_hops(const AddressSpace& space) {
  constexpr unsigned kDetour = 2;
  return space.levels() == 1 ? 1 : std::min(kMaxLevels, space.levels() + kDetour);
}

Route shortest_route(const AddressSpace& space, ServerId from, ServerId to) {
  Route route;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned digit = space.digit(to, level);
    if (digit == space.digit(from, level)) continue;
    route.append({static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)});
  }
  return route;
}

}  // namespace gradcube::bcube
