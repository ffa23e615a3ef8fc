// The shared region, mapped into the trainer: checked and sealed once when it is mapped, unmapped
// at the end.
//
// The daemon made the file; the trainer checks it nevertheless: in a region of another version or
// size the trainer would read the wrong words, and a region that shrinks would end it with SIGBUS.
// The trainer's seals make it safe for the daemon (shared_layout.h).
#ifndef GRADCUBE_TRAINER_SRC_SESSION_REGION_H_
#define GRADCUBE_TRAINER_SRC_SESSION_REGION_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/shared_layout.h"

namespace gradcube::trainer {

class Region {
 public:
  // Maps all of `fd`, which stays the caller's. `bytes` is what the daemon's Offer says,
  // `heap_bytes` what was asked for. Throws Failure: GRADCUBE_EPROTOCOL when the region is not what
  // shared_layout.h describes, GRADCUBE_ESYSTEM when the kernel cannot map or seal it.
  Region(int fd, std::uint64_t bytes, std::uint64_t heap_bytes);
  ~Region() { unmap(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Touches the pages of [begin, end), which are offsets from the region's start: see pages.h.
  int touch(std::uint64_t begin, std::uint64_t end) const;

  // Earlier than the destructor; nothing else may be called after it.
  void unmap();

  shared::RegionHeader& header() const;
  shared::Submission* submissions() const;
  const shared::Completion* completions() const;
  std::span<std::byte> heap() const;
  std::span<std::byte> memory() const { return {base_, bytes_}; }

  // Of an address in the region, from the region's start: what a Submission carries.
  std::uint64_t offset_of(const void* address) const;

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_REGION_H_
