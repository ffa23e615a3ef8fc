#include "dataplane/links/way_back.h"

namespace gradcube::dataplane {

std::optional<protocol::RoutingHeader> way_back(const bcube::NeighbourTable& neighbours,
                                                const protocol::RoutingHeader& routing) {
  const bcube::AddressSpace& space = neighbours.space();
  if (!space.contains(routing.source)) return std::nullopt;
  protocol::RoutingHeader back;
  back.source = static_cast<std::uint16_t>(neighbours.self());
  back.destination = routing.source;
  back.hop_count = static_cast<std::uint8_t>(routing.hop_index + 1);
  bcube::ServerId at = routing.source;
  for (unsigned i = 0; i < back.hop_count; ++i) {
    const protocol::Hop hop = routing.hops[i];
    if (hop.level >= space.levels() || hop.digit >= space.hop_digits(hop.level))
      return std::nullopt;
    back.hops[back.hop_count - 1 - i] = {
        hop.level, static_cast<std::uint8_t>(space.digit_back(at, hop.level, hop.digit))};
    at = space.with_digit(at, hop.level, hop.digit);
  }
  if (at != neighbours.self()) return std::nullopt;
  if (neighbours.find(back.hops[0].level, back.hops[0].digit) == nullptr) return std::nullopt;
  return back;
}

}  // namespace gradcube::dataplane
