#include "bcube_forwarding/route.h"

namespace gradcube::bcube {

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
