#include "dataplane/daemon/trainers/trainer_region.h"

#include <fmt/format.h>
#include <utility>

#include "dataplane/daemon/trainers/trainer_channel.h"
#include "trainer/heap_size.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

std::shared_ptr<SessionRegion> make_trainer_region(std::uint64_t heap_bytes,
                                                   MemoryQuota::Charge charge,
                                                   std::optional<unsigned> numa_node) {
  if (heap_bytes == 0 || heap_bytes > shared::kMostHeapBytes) {
    throw JoinRefused(
        GRADCUBE_EINVAL,
        fmt::format("a heap of {} bytes was asked for: GRADCUBE_HEAP is from 1 to {} bytes",
                    heap_bytes, shared::kMostHeapBytes));
  }
  return std::make_shared<SessionRegion>(heap_bytes, std::move(charge), numa_node);
}

std::shared_ptr<SessionRegion> make_own_region(std::uint64_t heap_bytes) {
  std::shared_ptr<SessionRegion> region = make_trainer_region(heap_bytes);
  region->confirm(region->bytes());
  return region;
}

}  // namespace gradcube::dataplane
