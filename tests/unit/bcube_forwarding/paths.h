// Paths as text, for what a test says of them.
#ifndef GRADCUBE_TESTS_UNIT_BCUBE_FORWARDING_PATHS_H_
#define GRADCUBE_TESTS_UNIT_BCUBE_FORWARDING_PATHS_H_

#include <string>
#include <vector>

#include "bcube_forwarding/path_set.h"

namespace gradcube::bcube {

// The switch, or the cable, of each hop of a route from `from`.
inline std::vector<SwitchId> switches_on(const AddressSpace& space, ServerId from,
                                         const Route& route) {
  std::vector<SwitchId> switches;
  walk(space, from, route, [&](ServerId at, Hop hop, ServerId) {
    switches.push_back(switch_of(space, at, hop));
    return true;
  });
  return switches;
}

inline std::string text_of(const AddressSpace& space, ServerId from,
                           const std::vector<Route>& paths) {
  std::string text = space.text(from) + ':';
  for (const Route& route : paths) {
    for (const ServerId server : servers_on(space, from, route)) text += ' ' + space.text(server);
    text += ';';
  }
  return text;
}

}  // namespace gradcube::bcube

#endif  // GRADCUBE_TESTS_UNIT_BCUBE_FORWARDING_PATHS_H_
