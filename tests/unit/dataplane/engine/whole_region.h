// A region for tests of what lies behind its checks.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_WHOLE_REGION_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_WHOLE_REGION_H_

#include <cstdint>
#include <memory>

#include "dataplane/engine/memory/session_region.h"

namespace gradcube::dataplane {

// All of its heap may be used.
inline std::shared_ptr<SessionRegion> whole_region(std::uint64_t heap_bytes) {
  auto region = std::make_shared<SessionRegion>(heap_bytes);
  region->confirm(region->bytes());
  return region;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_WHOLE_REGION_H_
