#include "bcube_forwarding/path_set.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace gradcube::bcube {
namespace {

constexpr unsigned kMostHops = kMaxLevels;  // a Route has no room for more

unsigned level_below(const AddressSpace& space, unsigned level) {
  return (level == 0 ? space.levels() : level) - 1;
}

// Hops that set the digits in which the ends differ: at `level`, the level below it and so on, for
// so many levels. The short way round each ring.
void set_digits(const AddressSpace& space, ServerId from, ServerId to, unsigned level,
                unsigned levels, Route& route) {
  for (unsigned i = 0; i < levels; ++i) {
    const unsigned digit = space.digit(from, level);
    const unsigned end = space.digit(to, level);
    append_hops(route, space, level, digit, end, goes_forward(space, level, digit, end));
    level = level_below(space, level);
  }
}

// DCRouting. The digits of the ends differ at `level`.
Route direct_path(const AddressSpace& space, ServerId from, ServerId to, unsigned level) {
  Route route;
  set_digits(space, from, to, level, space.levels(), route);
  return route;
}

// AltDCRouting. The digits of the ends are equal at `level`, and `digit` is another.
Route detour_path(const AddressSpace& space, ServerId from, ServerId to, unsigned level,
                  unsigned digit) {
  Route route;
  route.append(hop_to(level, digit));
  const ServerId neighbour = space.with_digit(from, level, digit);
  set_digits(space, neighbour, to, level_below(space, level), space.levels(), route);
  return route;
}

// The digits of the ends differ at `level`, and the path goes the long way round there: a hop, the
// other digits, and the rest of the way.
Route long_path(const AddressSpace& space, ServerId from, ServerId to, unsigned level) {
  const unsigned own = space.digit(from, level);
  const unsigned end = space.digit(to, level);
  const bool forward = !goes_forward(space, level, own, end);
  const unsigned first = forward ? space.next_digit(level, own) : space.previous_digit(level, own);
  Route route;
  route.append(hop_to(level, first));
  set_digits(space, from, to, level_below(space, level), space.levels() - 1, route);
  append_hops(route, space, level, first, end, forward);
  return route;
}

bool all_hops_work(const AddressSpace& space, ServerId from, const Route& route,
                   const HopFilter& works) {
  return walk(space, from, route, [&](ServerId at, Hop hop, ServerId next) {
    return !space.is_absent(next) && (!works || works(at, hop));
  });
}

// The path of the set that leaves through a port with a cable, unless it is too long.
std::optional<Route> cable_path(const AddressSpace& space, ServerId from, ServerId to,
                                unsigned port) {
  const unsigned level = space.level_of_port(port);
  const unsigned own = space.digit(from, level);
  const unsigned end = space.digit(to, level);
  const bool forward = space.port_to(level, own, space.next_digit(level, own)) == port;
  const unsigned direct = distance(space, from, to);
  if (own == end) {
    if (direct + 2 > kMostHops) return std::nullopt;
    const unsigned aside =
        forward ? space.next_digit(level, own) : space.previous_digit(level, own);
    return detour_path(space, from, to, level, aside);
  }
  if (forward == goes_forward(space, level, own, end)) {
    return direct > kMostHops ? std::nullopt : std::optional(direct_path(space, from, to, level));
  }
  const unsigned short_way = distance(space, from, space.with_digit(from, level, end));
  if (direct + space.radix(level) - 2 * short_way > kMostHops) return std::nullopt;
  return long_path(space, from, to, level);
}

// The path of the set that leaves over `level`'s switch, if it works.
std::optional<Route> switch_path(const AddressSpace& space, ServerId from, ServerId to,
                                 unsigned level, const HopFilter& works) {
  const unsigned own = space.digit(from, level);
  if (own != space.digit(to, level)) {
    const Route route = direct_path(space, from, to, level);
    return all_hops_work(space, from, route, works) ? std::optional(route) : std::nullopt;
  }
  if (distance(space, from, to) + 2 > kMostHops) return std::nullopt;
  // The digit after the own one comes first, so that the detours of different servers spread.
  for (unsigned i = 1; i < space.radix(level); ++i) {
    const unsigned digit = (own + i) % space.radix(level);
    const Route route = detour_path(space, from, to, level, digit);
    if (all_hops_work(space, from, route, works)) return route;
  }
  return std::nullopt;
}

std::optional<Route> path_through(const AddressSpace& space, ServerId from, ServerId to,
                                  unsigned port, const HopFilter& works) {
  if (!space.cabled()) return switch_path(space, from, to, port, works);
  const std::optional<Route> route = cable_path(space, from, to, port);
  return route && all_hops_work(space, from, *route, works) ? route : std::nullopt;
}

// Where a further path must not pass: the inner servers and the switches of those chosen.
class Taken {
 public:
  explicit Taken(const AddressSpace& space)
      : servers_(space.addresses()), switches_(space.levels() * space.addresses()), space_(space) {}

  void add(ServerId from, const Route& route) {
    walk(space_, from, route, [&](ServerId at, Hop hop, ServerId) {
      switches_[place_of(switch_of(space_, at, hop))] = true;
      if (at != from) servers_[at] = true;
      return true;
    });
  }

  bool has(ServerId server) const { return servers_[server]; }
  bool has(SwitchId which) const { return switches_[place_of(which)]; }

 private:
  std::size_t place_of(SwitchId which) const {
    return std::size_t{which.level} * space_.addresses() + which.first;
  }

  std::vector<bool> servers_;
  std::vector<bool> switches_;
  const AddressSpace& space_;
};

// A shortest working path that passes nothing taken; empty if there is none.
Route shortest_free_path(const AddressSpace& space, ServerId from, ServerId to,
                         const HopFilter& works, const Taken& taken) {
  return searched_route(space, from, to, [&](ServerId at, Hop hop) {
    return !taken.has(space.with_digit(at, hop.level, hop.digit)) &&
           !taken.has(switch_of(space, at, hop)) && (!works || works(at, hop));
  });
}

// Of two servers on one switch.
std::vector<Route> rail_paths(const AddressSpace& space, ServerId from, ServerId to,
                              const HopFilter& works) {
  std::vector<Route> paths;
  for (unsigned rail = 0; rail < space.rails(from, to); ++rail) {
    Route route;
    route.append(hop_over(space, from, to, rail));
    if (all_hops_work(space, from, route, works)) paths.push_back(route);
  }
  return paths;
}

// As many as are missing to one path per port, or as can be found.
void add_substitutes(const AddressSpace& space, ServerId from, ServerId to, const HopFilter& works,
                     std::vector<Route>& paths) {
  Taken taken(space);
  for (const Route& route : paths) taken.add(from, route);
  while (paths.size() < space.ports()) {
    const Route route = shortest_free_path(space, from, to, works, taken);
    if (route.size() == 0) return;
    taken.add(from, route);
    paths.push_back(route);
  }
}

}  // namespace

SwitchId switch_of(const AddressSpace& space, ServerId server, Hop hop) {
  if (!space.cabled()) return {hop.level, space.with_digit(server, hop.level, 0)};
  const bool forward = hop.digit == space.next_digit(hop.level, space.digit(server, hop.level));
  return {hop.level, forward ? server : space.with_digit(server, hop.level, hop.digit)};
}

std::vector<ServerId> servers_on(const AddressSpace& space, ServerId from, const Route& route) {
  std::vector<ServerId> servers = {from};
  walk(space, from, route, [&](ServerId, Hop, ServerId next) {
    servers.push_back(next);
    return true;
  });
  return servers;
}

unsigned port_at_end(const AddressSpace& space, ServerId from, const Route& route) {
  unsigned port = 0;
  walk(space, from, route, [&](ServerId at, Hop hop, ServerId next) {
    port = space.port_of(next, hop.level, space.digit_back(at, hop.level, hop.digit));
    return true;
  });
  return port;
}

std::vector<Route> parallel_paths(const AddressSpace& space, ServerId from, ServerId to,
                                  const HopFilter& works) {
  std::vector<Route> paths;
  if (from == to) return paths;
  if (space.rails() > 1) return rail_paths(space, from, to, works);
  for (unsigned port = 0; port < space.ports(); ++port) {
    const std::optional<Route> route = path_through(space, from, to, port, works);
    if (route) paths.push_back(*route);
  }
  if (paths.size() < space.ports()) add_substitutes(space, from, to, works, paths);
  std::sort(paths.begin(), paths.end(), [&](const Route& one, const Route& other) {
    return std::tuple(one.size(), space.port_of(from, one[0].level, one[0].digit)) <
           std::tuple(other.size(), space.port_of(from, other[0].level, other[0].digit));
  });
  return paths;
}

std::vector<Route> candidate_paths(const AddressSpace& space, ServerId from, ServerId to,
                                   std::size_t most, const HopFilter& works) {
  std::vector<Route> paths = parallel_paths(space, from, to, works);
  if (paths.size() < most && !space.cabled() && distance(space, from, to) + 2 <= kMostHops) {
    for (unsigned level = 0; level < space.levels(); ++level) {
      const unsigned own = space.digit(from, level);
      if (own != space.digit(to, level)) continue;
      for (unsigned i = 1; i < space.radix(level); ++i) {
        const Route route = detour_path(space, from, to, level, (own + i) % space.radix(level));
        if (std::find(paths.begin(), paths.end(), route) == paths.end() &&
            all_hops_work(space, from, route, works)) {
          paths.push_back(route);
        }
      }
    }
  }
  if (paths.size() > most) paths.resize(most);
  return paths;
}

std::vector<Route> message_paths(const AddressSpace& space, ServerId from, ServerId to) {
  std::vector<Route> paths = parallel_paths(space, from, to);
  std::erase_if(paths, [&space](const Route& path) { return path.size() > most_hops(space); });
  if (paths.empty()) return paths;
  const auto shortest = std::count_if(paths.begin(), paths.end(), [&](const Route& path) {
    return path.size() == paths.front().size();
  });
  const auto first = static_cast<std::ptrdiff_t>(difference(space, from, to)) % shortest;
  std::rotate(paths.begin(), paths.begin() + first, paths.begin() + shortest);
  return paths;
}

}  // namespace gradcube::bcube
