// Gives memory that is shared with trainers back to the system.
//
// The system takes 0.2 s of a core for each GiB. So what is large is given back by a thread of its
// own, for which nobody waits; where there is none, at once.
//
// Threads: any.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SHARED_PAGES_H_
#define GRADCUBE_DATAPLANE_ENGINE_SHARED_PAGES_H_

#include <cstdint>

namespace gradcube::dataplane {

// A file of memory with its mapping.
struct SharedPages {
  int file = -1;
  std::uint8_t* base = nullptr;
  std::uint64_t bytes = 0;
};

// Whether others who have the file keep its pages.
enum class OtherReaders { keep_them, lose_them };

// Takes the file and the mapping, which nobody uses any more.
void give_back(const SharedPages& pages, OtherReaders others);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SHARED_PAGES_H_
