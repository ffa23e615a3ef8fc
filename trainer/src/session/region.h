// The shared region, mapped into the trainer: checked and sealed once when it is mapped, unmapped
// at the end.
//
// The daemon made the file; the trainer checks it nevertheless: in a region of another version or
// size the trainer would read the wrong words, and a region that shrinks would end it with SIGBUS.
// The trainer's seals make it safe for the daemon (shared_layout.h).
//
// Who ends its session while the daemon works on its buffers parts from them: the heap becomes this
// process's own, at the same addresses, with what is in it. The daemon goes on with what it has, so
// what the trainer writes from then on changes nothing that it has submitted.
//
// Ownership: owns the mapping and the file's descriptor.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_REGION_H_
#define GRADCUBE_TRAINER_SRC_SESSION_REGION_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"

namespace gradcube::trainer {

class Region {
 public:
  // Maps all of the file. `bytes` is what the daemon's Offer says, `heap_bytes` what was asked for.
  // Throws Failure: GRADCUBE_EPROTOCOL when the region is not what shared_layout.h describes,
  // GRADCUBE_ESYSTEM when the kernel cannot map or seal it.
  Region(Descriptor file, std::uint64_t bytes, std::uint64_t heap_bytes);
  ~Region() { unmap(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Touches the pages of [begin, end), which are offsets from the region's start: see pages.h.
  int touch(std::uint64_t begin, std::uint64_t end) const;

  // From now on what this process writes to the first `bytes` of the heap is its own. What the
  // daemon writes shows only in pages that this process has not written to since. False where the
  // system has no room for that; then nothing has changed.
  bool part_heap(std::size_t bytes) noexcept;

  // is_gone() from now on, and those bytes are not there any more: who touches them gets SIGSEGV,
  // rather than to write into what others add up.
  void give_up_heap(std::size_t bytes) noexcept;
  bool is_gone() const { return is_gone_; }

  // Earlier than the destructor; nothing else may be called after it.
  void unmap();

  // The file alone, in a forked child: it would keep the memory alive.
  void close_file() { file_.reset(); }

  shared::RegionHeader& header() const;
  shared::Submission* submissions() const;
  const shared::Completion* completions() const;
  std::span<std::byte> heap() const;
  std::span<std::byte> memory() const { return {base_, bytes_}; }

  // Of an address in the region, from the region's start: what a Submission carries.
  std::uint64_t offset_of(const void* address) const;

 private:
  Descriptor file_;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  bool is_gone_ = false;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_REGION_H_
