// Gives the pages of a mapping memory, so that this process is charged for it.
//
// Any thread, also while others write to the pages: what they contain stays.
#ifndef GRADCUBE_TRAINER_SRC_BASE_PAGES_H_
#define GRADCUBE_TRAINER_SRC_BASE_PAGES_H_

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/shared_mapping.h"

namespace gradcube::trainer {

// An exchange of a value for itself changes nothing, and counts as a write. Compilers may turn
// other operations that change nothing, such as fetch_or(0), into reads. Where the system has no
// memory for a page, this process gets a signal.
inline void touch_each_page(std::span<std::byte> pages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < pages.size(); at += page) {
    const std::atomic_ref byte(reinterpret_cast<unsigned char&>(pages[at]));
    unsigned char value = byte.load(std::memory_order_relaxed);
    // If it fails, somebody else has just written.
    byte.compare_exchange_strong(value, value);
  }
}

// A swapped page is not.
inline bool is_resident(std::byte* page, std::size_t bytes) {
  unsigned char flags = 0;
  return ::mincore(page, bytes, &flags) != 0 || (flags & 1) != 0;
}

// `pages` begin and end at pages. They get huge pages where they can. 0, or the errno value that
// says why there is no memory.
inline int touch(std::span<std::byte> pages) {
  // A refusal only means that the pages stay small.
  shared::take_huge_pages(pages);
  int result = 0;
  do {
    result = ::madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result != 0 && errno != EINVAL) return errno;
  // Linux before 5.14 does not know this advice, and QEMU's user mode takes any and does nothing.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const bool is_done = result == 0 && is_resident(pages.data() + pages.size() - page, page);
  if (!is_done) touch_each_page(pages);
  return 0;
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_PAGES_H_
