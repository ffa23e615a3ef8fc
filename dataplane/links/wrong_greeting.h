// What a port hears and should not: a greeting that shows that something is cabled or set wrongly.
//
// A greeting names its sender, the level of the sender's port, and a digest of the sender's
// settings. So whoever hears it knows whether the sender belongs behind this port. The engine keeps
// the last greeting of each port that does not (link_keeper.h); the control thread puts it into
// words (daemon/cabling.h).
//
// Plain values; any thread.
#ifndef GRADCUBE_DATAPLANE_LINKS_WRONG_GREETING_H_
#define GRADCUBE_DATAPLANE_LINKS_WRONG_GREETING_H_

#include <cstdint>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/host/clock.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

enum class GreetingFault : std::uint8_t {
  none,
  other_key,       // no MAC by this cluster's key: nothing that it says is known to be so
  other_settings,  // of another cluster, or of one that was not started with the same settings
  own_address,     // a second server has this one's, or this one hears itself
  other_level,     // the sender's port is not of the level of this one
  no_neighbour,    // of the same level, and not behind this port
};

struct WrongGreeting {
  GreetingFault fault = GreetingFault::none;
  std::uint8_t level = 0;    // of the sender's port
  std::uint16_t server = 0;  // the sender; any number
  protocol::SettingsDigest settings;
  Nanoseconds heard = 0;  // when
};

// What is wrong with a greeting that came in through this port of a server with these neighbours
// and settings.
inline GreetingFault fault_of(const protocol::LinkHeader& greeting, unsigned port,
                              const bcube::NeighbourTable& neighbours,
                              const protocol::SettingsDigest& settings) {
  if (greeting.settings.fingerprint != settings.fingerprint) return GreetingFault::other_settings;
  if (greeting.server == neighbours.self()) return GreetingFault::own_address;
  if (greeting.level != neighbours.space().level_of_port(port)) return GreetingFault::other_level;
  if (!neighbours.is_behind(port, greeting.server)) return GreetingFault::no_neighbour;
  return GreetingFault::none;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_WRONG_GREETING_H_
