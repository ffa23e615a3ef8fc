// The memory of a trainer that joins: made when it says what it wants.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_TRAINERS_TRAINER_REGION_H_
#define GRADCUBE_DATAPLANE_DAEMON_TRAINERS_TRAINER_REGION_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "dataplane/engine/memory/session_region.h"

namespace gradcube::dataplane {

// Throws JoinRefused unless a trainer may ask for a heap of this size; control::SetupError.
std::shared_ptr<SessionRegion> make_trainer_region(
    std::uint64_t heap_bytes, MemoryQuota::Charge charge = {},
    std::optional<unsigned> numa_node = std::nullopt);

// For a trainer that lives in this process, in simulations and benches: all of its heap may be
// used, whoever touches it first.
std::shared_ptr<SessionRegion> make_own_region(std::uint64_t heap_bytes);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_TRAINERS_TRAINER_REGION_H_
