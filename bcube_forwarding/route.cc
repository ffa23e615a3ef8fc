#include "bcube_forwarding/route.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

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
  if (space.levels() > 1) {
    return space.is_whole() ? std::min(kMaxLevels, diameter(space) + kDetour) : kMaxLevels;
  }
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

void append_hops(Route& route, const AddressSpace& space, unsigned level, unsigned digit,
                 unsigned end, bool forward) {
  while (digit != end) {
    digit = !space.cabled() ? end
            : forward       ? space.next_digit(level, digit)
                            : space.previous_digit(level, digit);
    route.append(hop_to(level, digit));
  }
}

bool passes_servers_alone(const AddressSpace& space, ServerId from, const Route& route) {
  return walk(space, from, route,
              [&](ServerId, Hop, ServerId next) { return !space.is_absent(next); });
}

Route searched_route(const AddressSpace& space, ServerId from, ServerId to,
                     const HopFilter& works) {
  struct Reached {
    ServerId server;
    Route route;
  };
  std::vector<Reached> reached = {{from, {}}};
  std::vector<bool> closed(space.addresses());
  closed[from] = true;
  for (std::size_t i = 0; i < reached.size() && reached[i].route.size() < kMaxLevels; ++i) {
    const Reached at = reached[i];
    for (unsigned level = 0; level < space.levels(); ++level) {
      const unsigned own = space.digit(at.server, level);
      for (unsigned digit = 0; digit < space.radix(level); ++digit) {
        if (!space.joins(level, own, digit)) continue;
        const ServerId next = space.with_digit(at.server, level, digit);
        if (closed[next] || space.is_absent(next)) continue;
        const Hop hop = hop_to(level, digit);
        if (works && !works(at.server, hop)) continue;
        Route route = at.route;
        route.append(hop);
        if (next == to) return route;
        closed[next] = true;
        reached.push_back({next, route});
      }
    }
  }
  return {};
}

Hop hop_over(const AddressSpace& space, ServerId from, ServerId to, unsigned rail) {
  return hop_to(0, space.hop_digit(to, 0, rail % space.rails(from, to)));
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
  if (distance(space, from, to) > kMaxLevels) return {};
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
  for (unsigned order = 0; order < count; ++order) {
    Route route;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned level = levels[(first + order + i) % count];
      const unsigned digit = space.digit(from, level);
      const unsigned end = space.digit(to, level);
      append_hops(route, space, level, digit, end, goes_forward(space, level, digit, end));
    }
    if (space.is_whole() || passes_servers_alone(space, from, route)) return route;
  }
  return from == to ? Route() : searched_route(space, from, to);
}

}  // namespace gradcube::bcube
