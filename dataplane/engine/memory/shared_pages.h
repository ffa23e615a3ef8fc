// Gives memory that is shared with trainers back to the system.
//
// The system takes 0.2 s of a core for each GiB. So what is large is given back by a thread of its
// own, in slices, so that nobody else waits long who changes mappings; where there is no thread, at
// once. The user's quota has it back when the pages have gone.
//
// Threads: any.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MEMORY_SHARED_PAGES_H_
#define GRADCUBE_DATAPLANE_ENGINE_MEMORY_SHARED_PAGES_H_

#include <cstdint>
#include <memory>

#include "dataplane/engine/memory/memory_quota.h"

namespace gradcube::dataplane {

// A file of memory with its mapping.
struct SharedPages {
  int file = -1;
  std::uint8_t* base = nullptr;
  std::uint64_t bytes = 0;
};

// Whether others who have the file keep its pages.
enum class OtherReaders { keep_them, lose_them };

// Takes the file and the mapping, which nobody uses any more, and keeps what was charged for them
// until they have gone.
void give_back(const SharedPages& pages, OtherReaders others,
               std::shared_ptr<const MemoryQuota::Charge> charge = nullptr);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MEMORY_SHARED_PAGES_H_
