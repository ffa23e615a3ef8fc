// The table of a hub's keys, as a trainer hands it over (shared::HubTable): hostile bytes, which
// the caller has copied out of the trainer's memory.
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_TABLE_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_TABLE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/checkpoint/hub_key.h"
#include "control/checkpoint/key_optimizers.h"

namespace gradcube::dataplane {

struct HubTableContent {
  std::vector<control::HubKey> keys;  // as ordered_keys() returns them
  control::KeyOptimizers optimizers;
  std::uint64_t chunk_bytes = 0;
  std::vector<bcube::ServerId> aggregators;  // any numbers
  std::optional<std::uint32_t> staleness;    // of a hub with aggregators
  bool accumulates = false;                  // of one without a staleness
};

// Throws control::UsageError, with a message that begins with `where`.
HubTableContent read_hub_table(std::string_view bytes, std::string_view where);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_HUB_TABLE_H_
