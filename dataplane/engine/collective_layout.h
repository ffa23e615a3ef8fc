// Where the segments of one collective lie: in the streams of one thread (sequences) and in the
// trainer's buffer (bytes).
//
// Every server computes the same layout from the plan, the buffer's size and the segment size, so a
// segment is named on the wire by its sequence alone. A piece is cut into `rows` segments of nearly
// equal size, the same number for every piece of the thread (pieces shorter than that have empty
// segments; each exchange has at least one segment, so that even an empty collective meets every
// neighbour and is checked against it).
//
// Units: bytes of the buffer, in units of 64 (kUnit) as in control/plan/plan.h. Sequences are 64 bits,
// counted from the job's last reset. Plain values; owned by the thread's PlanExecutor.
#ifndef GRADCUBE_DATAPLANE_ENGINE_COLLECTIVE_LAYOUT_H_
#define GRADCUBE_DATAPLANE_ENGINE_COLLECTIVE_LAYOUT_H_

#include <array>
#include <cstdint>

#include "dataplane/engine/thread_schedule.h"

namespace gradcube::dataplane {

inline constexpr std::uint64_t kUnit = 64;

// The bytes of one segment.
struct SegmentRange {
  std::uint64_t begin = 0;
  std::uint32_t bytes = 0;
};

class CollectiveLayout {
 public:
  CollectiveLayout() = default;

  // thread_range: the thread's share of a buffer of total_bytes. segment_bytes: the most a segment
  // carries, a multiple of kUnit. first: the sequence of this collective's first segment in the
  // streams of each step.
  CollectiveLayout(const ThreadSchedule& schedule, control::ByteRange thread_range,
                   std::uint64_t total_bytes, std::uint32_t segment_bytes,
                   const std::array<std::uint64_t, kMaxSteps>& first);

  std::uint32_t rows() const { return rows_; }
  std::uint64_t first(unsigned w) const { return first_[w]; }
  std::uint64_t end(unsigned w) const { return end_[w]; }
  std::uint32_t length(unsigned w) const { return static_cast<std::uint32_t>(end_[w] - first_[w]); }

  // The segment at position q of stream (w, r); r = 0 is the inward stream.
  SegmentRange segment(const ThreadSchedule& schedule, unsigned w, unsigned r,
                       std::uint32_t q) const;

 private:
  struct Units {
    std::uint64_t begin = 0;
    std::uint64_t count = 0;
  };
  static Units part(Units whole, std::uint64_t index, std::uint64_t parts) {
    const std::uint64_t begin = whole.count * index / parts;
    const std::uint64_t end = whole.count * (index + 1) / parts;
    return {whole.begin + begin, end - begin};
  }

  std::uint64_t total_bytes_ = 0;
  std::uint32_t rows_ = 1;
  std::array<std::uint64_t, kMaxSteps> first_{};
  std::array<std::uint64_t, kMaxSteps> end_{};
  std::array<Units, kMaxSteps + 1>
      held_{};  // held_[w]: what this server still works on when step w begins
};

}  // namespace gradcube::dataplane

#endif
