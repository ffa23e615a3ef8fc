#include "bcube_forwarding/route.h"

#include <algorithm>
#include <array>

namespace gradcube::bcube {

namespace {

unsigned hops_at(const AddressSpace& space, unsigned level, unsigned from, unsigned to) {
  if (!space.cabled()) return from == to ? 0 : 1;
  const unsigned forward = from <= to ? to - from : to + space.radix(level) - from;
  return std::min(forward, space.radix(level) - forward);
}

}  // namespace

unsigned most_hops(const AddressSpace& space) {
  constexpr unsigned kDetour = 2;
  if (space.levels() > 1) return std::min(kMaxLevels, diameter(space) + kDetour);
  return space.cabled() ? std::min(kMaxLevels, space.radix(0) - 1) : 1;
}

unsigned distance(const AddressSpace& space, ServerId from, ServerId to) {
  unsigned hops = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    hops += hops_at(space, level, space.digit(from, level), space.digit(to, level));
  }
  return hops;
}

unsigned diameter(const AddressSpace& space) {
  unsigned hops = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    hops += space.cabled() ? space.radix(level) / 2 : 1;
  }
  return hops;
}

bool goes_forward(const AddressSpace& space, unsigned level, unsigned from, unsigned to) {
  const unsigned forward = from <= to ? to - from : to + space.radix(level) - from;
  const unsigned backward = space.radix(level) - forward;
  return forward == backward ? from % 2 == 0 : forward < backward;
}

namespace {

// The hops that set one digit: on cables one for each server on the short way round.
void append_level(Route& route, const AddressSpace& space, unsigned level, ServerId from,
                  ServerId to) {
  const unsigned end = space.digit(to, level);
  unsigned digit = space.digit(from, level);
  const bool forward = goes_forward(space, level, digit, end);
  while (digit != end) {
    digit = !space.cabled() ? end
            : forward       ? space.next_digit(level, digit)
                            : space.previous_digit(level, digit);
    route.append({static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)});
  }
}

}  // namespace

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
  Route route;
  if (distance(space, from, to) > kMaxLevels) return route;
  const ServerId differs = difference(space, from, to);
  std::array<unsigned, kMaxLevels> levels{};
  unsigned count = 0;
  unsigned first = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned by = space.digit(differs, level);
    if (by == 0) continue;
    levels[count++] = level;
    // Where all radices are 2, only the levels tell one difference from another.
    first += by + level;
  }
  if (space.cabled()) first = 0;
  for (unsigned i = 0; i < count; ++i) {
    append_level(route, space, levels[(first + i) % count], from, to);
  }
  return route;
}

}  // namespace gradcube::bcube
