// The memory that belongs to the daemon, because a collective in flight uses it: the trainer's
// buffers, and the copies of those in the heap. Ranges never overlap, unless all that share a byte
// are only read, as those of sends are. Guarded by the session's mutex. Looking is linear in what
// is in flight, over a dense table of at most two ranges each.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_BUSY_MEMORY_H_
#define GRADCUBE_TRAINER_SRC_SESSION_BUSY_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/shared_layout.h"

namespace gradcube::trainer {

class BusyMemory {
 public:
  // All the room that it can need: later calls allocate nothing.
  BusyMemory() { ranges_.reserve(std::size_t{2} * shared::kRingEntries); }

  // Nothing where `memory` is empty.
  void add(std::span<const std::byte> memory, bool is_read_only = false) {
    if (!memory.empty()) ranges_.push_back(range_of(memory, is_read_only));
  }

  // What was added before.
  void remove(std::span<const std::byte> memory, bool is_read_only = false) {
    const auto found = std::find(ranges_.begin(), ranges_.end(), range_of(memory, is_read_only));
    if (found == ranges_.end()) return;
    *found = ranges_.back();
    ranges_.pop_back();
  }

  // With what the same bytes cannot be used for at the same time.
  bool overlaps(std::span<const std::byte> memory, bool is_read_only = false) const {
    const Range wanted = range_of(memory, is_read_only);
    return std::any_of(ranges_.begin(), ranges_.end(), [wanted](const Range& busy) {
      return busy.begin < wanted.end && wanted.begin < busy.end &&
             !(busy.is_read_only && wanted.is_read_only);
    });
  }

 private:
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool is_read_only;
    bool operator==(const Range&) const = default;
  };

  static Range range_of(std::span<const std::byte> memory, bool is_read_only) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
    return {begin, begin + memory.size(), is_read_only};
  }

  std::vector<Range> ranges_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_BUSY_MEMORY_H_
