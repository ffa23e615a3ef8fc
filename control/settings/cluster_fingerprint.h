// A number that two daemons have in common if they can work in one cluster.
//
// Each daemon of a cluster is started on its own, and nobody compares their settings. So neighbours
// tell each other this number, and one that has another is no neighbour (docs/forwarding.md).
//
// Pure functions; any thread.
#ifndef GRADCUBE_CONTROL_SETTINGS_CLUSTER_FINGERPRINT_H_
#define GRADCUBE_CONTROL_SETTINGS_CLUSTER_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "control/settings/cluster_settings.h"

namespace gradcube::control {

// What daemons choose themselves and must choose alike.
struct DaemonChoices {
  unsigned message_format = 0;  // of what they tell each other
  std::uint32_t segment_bytes = 0;
  std::uint32_t block_bytes = 0;
  std::int64_t greeting_ns = 0;
  bool checksums = false;
};

// All that must be the same, one "name value" after the other: the choices, and the settings that
// have Reach::cluster (setting.h), as far as they are given. Not the rest: whether a daemon has the
// same lcores, packet memory or queue as the next one concerns nobody else.
std::string agreement_text(const ClusterSettings& settings, const DaemonChoices& choices);

// FNV-1a of that text, 32 bits.
std::uint32_t cluster_fingerprint(const ClusterSettings& settings, const DaemonChoices& choices);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_CLUSTER_FINGERPRINT_H_
