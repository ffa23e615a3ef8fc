// How both sides map a session's memory, and how it gets huge pages.
//
// A segment path that runs over gradients larger than the caches is bound by memory, and with pages
// of 4 KiB every page costs a walk through the page tables and stops the hardware's prefetching
// (docs/performance.md). So a trainer asks for huge pages, and both sides map the region at a
// multiple of a huge page: a page table can refer to a huge page only there.
//
// Stateless; any thread.
#ifndef GRADCUBE_TRAINER_SHARED_MAPPING_H_
#define GRADCUBE_TRAINER_SHARED_MAPPING_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/shared_layout.h"

namespace gradcube::shared {

inline constexpr std::size_t kHugePage = std::size_t{1} << 21;
static_assert(kHeapOffset % kHugePage == 0);

// Maps all `bytes` of a region's file, readable and writable, at a multiple of kHugePage. Returns
// null with errno set if the system refuses. The caller unmaps `bytes`.
inline void* map_region(int descriptor, std::size_t bytes) noexcept {
  // Room in which a multiple lies, whatever the system's choice.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t whole = (bytes + page - 1) / page * page;
  const std::size_t room = whole + kHugePage;
  void* const reserved =
      ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(reserved);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  void* const mapped = ::mmap(begin + before, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    ::munmap(reserved, room);
    errno = error;
    return nullptr;
  }
  if (before != 0) ::munmap(begin, before);
  ::munmap(begin + before + whole, kHugePage - before);
  return mapped;
}

// Backs the whole huge pages inside `memory`, a part of a mapped region, by huge pages. What they
// contain stays, also where the other side uses it meanwhile. They take their memory now. Returns
// false if the system gave none of them or not all: the rest keeps its small pages, and works.
//
// The system's switch for huge pages in shared memory is off by default on most systems.
// MADV_COLLAPSE, of Linux 6.1, needs no switch; it only takes pages of which a part exists.
inline bool take_huge_pages(std::span<std::byte> memory) noexcept {
  constexpr int kPopulateRead =
      22;  // MADV_POPULATE_READ and MADV_COLLAPSE: newer than some headers
  constexpr int kCollapse = 25;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  if (memory.size() < before + kHugePage) return true;
  std::byte* const first = memory.data() + before;
  const std::size_t bytes = (memory.size() - before) / kHugePage * kHugePage;
  for (std::size_t at = 0; at < bytes; at += kHugePage) {
    if (::madvise(first + at, 1, kPopulateRead) != 0) return false;
  }
  return ::madvise(first, bytes, kCollapse) == 0;
}

}  // namespace gradcube::shared

#endif  // GRADCUBE_TRAINER_SHARED_MAPPING_H_
