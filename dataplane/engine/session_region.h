// The memory that one trainer shares with its daemon (trainer/shared_layout.h), as the daemon holds
// it: a sealed memfd and its mapping.
//
// The memfd is sealed against shrinking and growing, so a trainer cannot cut the file under the
// daemon's mapping. The heap is sparse: only the pages that are touched take memory.
//
// Segments leave the daemon as mbufs that point into the heap, so a region is unmapped only after
// the last such mbuf is gone. EngineJob makes these mbufs and counts them
// (rte_mbuf_ext_shared_info).
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_REGION_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_REGION_H_

#include <cstddef>
#include <cstdint>

#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// What the memfds are called in /proc/PID/maps.
inline constexpr const char* kRegionName = "gradcube-session";

class SessionRegion {
 public:
  // heap_bytes is rounded up to whole pages. Throws control::SetupError with a message.
  explicit SessionRegion(std::uint64_t heap_bytes);
  ~SessionRegion();
  SessionRegion(const SessionRegion&) = delete;
  SessionRegion& operator=(const SessionRegion&) = delete;

  std::uint8_t* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }

  shared::RegionHeader& header() const { return *reinterpret_cast<shared::RegionHeader*>(base_); }
  // A copy of the entry. Each of its words is read from the shared memory exactly once (an atomic
  // load), so what is checked is what is used, whatever the trainer writes meanwhile.
  shared::Submission read_submission(std::uint64_t index) const;
  shared::Completion& completion(std::uint64_t index) const {
    return reinterpret_cast<shared::Completion*>(
        base_ + shared::kCompletions)[index % shared::kRingEntries];
  }

  // Bytes of the heap that take memory now (the memfd's blocks).
  std::uint64_t resident_bytes() const;

 private:
  int descriptor_ = -1;
  std::uint8_t* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_REGION_H_
