// The memory that one trainer shares with its daemon (trainer/shared_layout.h), as the daemon holds
// it: a memfd and its mapping.
//
// Whose memory it is. The pages before the heap (kHeapOffset) may become the daemon's. The heap is
// sparse, and its pages are the trainer's: the trainer touches them first, so that its own control
// group is charged. The engines use only the confirmed part: bytes that the daemon has
// seen to have pages. Because a sealed file can lose no page, an access of the daemon to this part
// allocates nothing, and waits for no change of the file.
//
// A fault of the daemon in the region marks it as faulted (guarded_memory.h) and costs the session.
//
// Segments leave the daemon as mbufs that point into the heap, so a region is unmapped only after
// the last such mbuf is gone. EngineJob makes these mbufs and counts them
// (rte_mbuf_ext_shared_info).
//
// Threads: the control thread, but for base(), bytes(), header(), read_submission(), completion(),
// confirmed() and faulted(), which any may call.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MEMORY_SESSION_REGION_H_
#define GRADCUBE_DATAPLANE_ENGINE_MEMORY_SESSION_REGION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/engine/memory/guarded_memory.h"
#include "dataplane/engine/memory/memory_quota.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// What the memfds are called in /proc/PID/maps.
inline constexpr const char* kRegionName = "gradcube-session";

class SessionRegion {
 public:
  // heap_bytes is rounded up to whole pages. charge: of the trainer's user. numa_node: where its
  // memory should be (dataplane/host/memory_placement.h). Nothing of the heap is confirmed yet.
  // Throws control::SetupError with a message.
  explicit SessionRegion(std::uint64_t heap_bytes, MemoryQuota::Charge charge = {},
                         std::optional<unsigned> numa_node = std::nullopt);
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

  // Whether the file can lose no page any more (shared::kSeals).
  bool is_sealed() const;

  // How far the heap may be used, from the region's start.
  std::uint64_t confirmed() const { return confirmed_.load(std::memory_order_acquire); }
  void confirm(std::uint64_t end) { confirmed_.store(end, std::memory_order_release); }
  // Why a submission's buffer of so many bytes cannot begin at this offset; null if it can.
  const char* problem_of(std::uint64_t offset, std::uint64_t bytes) const;
  // Whether all pages of [begin, end) are there, each at a multiple of the page size. Allocates
  // none. Takes about 50 ns per page.
  bool has_pages(std::uint64_t begin, std::uint64_t end) const;

  // Holds what is confirmed, and what is about to be.
  MemoryQuota::Charge& charge() { return charge_; }
  const MemoryQuota::Charge& charge() const { return charge_; }

  bool faulted() const { return guard_->faulted(); }

  // Bytes of the heap that take memory now (the memfd's blocks).
  std::uint64_t resident_bytes() const;

 private:
  MemoryQuota::Charge charge_;
  int descriptor_ = -1;
  std::uint8_t* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::atomic<std::uint64_t> confirmed_{shared::kHeapOffset};
  std::optional<GuardedMemory> guard_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MEMORY_SESSION_REGION_H_
