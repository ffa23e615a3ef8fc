#include "bcube_forwarding/path_set.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace gradcube::bcube {
namespace {

constexpr unsigned kMostHops = kMaxLevels;  // a Route has no room for more

Hop hop_to(unsigned level, unsigned digit) {
  return {static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)};
}

unsigned level_below(const AddressSpace& space, unsigned level) {
  return (level == 0 ? space.levels() : level) - 1;
}

// Hops that set the digits in which the ends differ: at `level`, the level below it and so on,
// round to the level above it.
void set_digits(const AddressSpace& space, ServerId from, ServerId to, unsigned level,
                Route& route) {
  for (unsigned i = 0; i < space.levels(); ++i) {
    const unsigned digit = space.digit(to, level);
    if (digit != space.digit(from, level)) route.append(hop_to(level, digit));
    level = level_below(space, level);
  }
}

// DCRouting. The digits of the ends differ at `level`.
Route direct_path(const AddressSpace& space, ServerId from, ServerId to, unsigned level) {
  Route route;
  set_digits(space, from, to, level, route);
  return route;
}

// AltDCRouting. The digits of the ends are equal at `level`, and `digit` is another.
Route detour_path(const AddressSpace& space, ServerId from, ServerId to, unsigned level,
                  unsigned digit) {
  Route route;
  route.append(hop_to(level, digit));
  const ServerId neighbour = space.with_digit(from, level, digit);
  set_digits(space, neighbour, to, level_below(space, level), route);
  return route;
}

bool all_hops_work(const AddressSpace& space, ServerId from, const Route& route,
                   const HopFilter& works) {
  if (!works) return true;
  ServerId at = from;
  for (const Hop& hop : route) {
    const ServerId next = space.with_digit(at, hop.level, hop.digit);
    if (!works(at, hop.level, next)) return false;
    at = next;
  }
  return true;
}

// The path of the set that leaves over `level`, if it works.
std::optional<Route> path_over(const AddressSpace& space, ServerId from, ServerId to,
                               unsigned level, const HopFilter& works) {
  const unsigned own = space.digit(from, level);
  if (own != space.digit(to, level)) {
    const Route route = direct_path(space, from, to, level);
    return all_hops_work(space, from, route, works) ? std::optional(route) : std::nullopt;
  }
  if (shortest_route(space, from, to).size() + 2 > kMostHops) return std::nullopt;
  // The digit after the own one comes first, so that the detours of different servers spread.
  for (unsigned i = 1; i < space.radix(level); ++i) {
    const unsigned digit = (own + i) % space.radix(level);
    const Route route = detour_path(space, from, to, level, digit);
    if (all_hops_work(space, from, route, works)) return route;
  }
  return std::nullopt;
}

// Where a further path must not pass: the inner servers and the switches of those chosen.
class Taken {
 public:
  explicit Taken(const AddressSpace& space)
      : servers_(space.servers()), switches_(space.levels() * space.servers()), space_(space) {}

  void add(ServerId from, const Route& route) {
    for (const SwitchId which : switches_on(space_, from, route)) {
      switches_[place_of(which)] = true;
    }
    const std::vector<ServerId> servers = servers_on(space_, from, route);
    for (std::size_t i = 1; i + 1 < servers.size(); ++i) servers_[servers[i]] = true;
  }

  const std::vector<bool>& servers() const { return servers_; }
  bool has(SwitchId which) const { return switches_[place_of(which)]; }

 private:
  std::size_t place_of(SwitchId which) const {
    return std::size_t{which.level} * space_.servers() + which.first;
  }

  std::vector<bool> servers_;
  std::vector<bool> switches_;
  const AddressSpace& space_;
};

// A breadth-first search for a shortest working path that passes nothing taken.
std::optional<Route> shortest_free_path(const AddressSpace& space, ServerId from, ServerId to,
                                        const HopFilter& works, const Taken& taken) {
  struct Reached {
    ServerId server;
    Route route;
  };
  std::vector<Reached> reached = {{from, {}}};
  std::vector<bool> closed = taken.servers();
  closed[from] = true;
  for (std::size_t i = 0; i < reached.size() && reached[i].route.size() < kMostHops; ++i) {
    const Reached at = reached[i];
    for (unsigned level = 0; level < space.levels(); ++level) {
      if (taken.has(switch_of(space, at.server, level))) continue;
      for (unsigned digit = 0; digit < space.radix(level); ++digit) {
        const ServerId next = space.with_digit(at.server, level, digit);
        if (closed[next] || (works && !works(at.server, level, next))) continue;
        Route route = at.route;
        route.append(hop_to(level, digit));
        if (next == to) return route;
        closed[next] = true;
        reached.push_back({next, route});
      }
    }
  }
  return std::nullopt;
}

// As many as are missing to one path per level, or as can be found.
void add_substitutes(const AddressSpace& space, ServerId from, ServerId to, const HopFilter& works,
                     std::vector<Route>& paths) {
  Taken taken(space);
  for (const Route& route : paths) taken.add(from, route);
  while (paths.size() < space.levels()) {
    const std::optional<Route> route = shortest_free_path(space, from, to, works, taken);
    if (!route) return;
    taken.add(from, *route);
    paths.push_back(*route);
  }
}

}  // namespace

SwitchId switch_of(const AddressSpace& space, ServerId server, unsigned level) {
  return {level, space.with_digit(server, level, 0)};
}

std::vector<ServerId> servers_on(const AddressSpace& space, ServerId from, const Route& route) {
  std::vector<ServerId> servers = {from};
  for (const Hop& hop : route) {
    servers.push_back(space.with_digit(servers.back(), hop.level, hop.digit));
  }
  return servers;
}

std::vector<SwitchId> switches_on(const AddressSpace& space, ServerId from, const Route& route) {
  std::vector<SwitchId> switches;
  ServerId at = from;
  for (const Hop& hop : route) {
    switches.push_back(switch_of(space, at, hop.level));
    at = space.with_digit(at, hop.level, hop.digit);
  }
  return switches;
}

std::vector<Route> parallel_paths(const AddressSpace& space, ServerId from, ServerId to,
                                  const HopFilter& works) {
  std::vector<Route> paths;
  if (from == to) return paths;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const std::optional<Route> route = path_over(space, from, to, level, works);
    if (route) paths.push_back(*route);
  }
  if (paths.size() < space.levels()) add_substitutes(space, from, to, works, paths);
  std::sort(paths.begin(), paths.end(), [](const Route& one, const Route& other) {
    return std::tuple(one.size(), one[0].level) < std::tuple(other.size(), other[0].level);
  });
  return paths;
}

}  // namespace gradcube::bcube
