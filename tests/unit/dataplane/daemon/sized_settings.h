// A cluster whose parts tests size.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SIZED_SETTINGS_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SIZED_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "control/settings/cluster_settings.h"

namespace gradcube::dataplane {

inline control::ClusterSettings settings_of(const std::string& topology,
                                            std::optional<uint64_t> rate, unsigned mtu) {
  control::ClusterSettings settings;
  settings.topology = control::parse_topology(topology, "test");
  if (rate) settings.rates = control::LinkRates(*rate);
  settings.mtu = mtu;
  return settings;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_SIZED_SETTINGS_H_
