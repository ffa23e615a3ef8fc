// Where the segments of one collective lie: in the streams of one thread (sequences) and in the
// trainer's buffer (bytes).
//
// Every rank computes the same layout from the plan, the buffer's size and the segment size, so
// a segment is named on the wire by its sequence alone. The buffer is divided among the threads,
// each share by the digits of the piece's owner in the order of the thread's steps, and each piece
// into segments, all by part() (byte_range.h). So what a rank still works on when a step begins is
// one contiguous range, and its part y is what goes to the peer with digit y.
//
// Every piece of a thread has the same number of segments, of nearly equal size. Short pieces have
// empty segments. Each exchange has at least one segment, so that even an empty collective meets
// every peer and is checked against it.
//
// Units: bytes of the buffer. Sequences are 64 bits, counted from the job's last reset. A plain
// value, owned by the thread's PlanExecutor; nothing allocates.
#ifndef GRADCUBE_CONTROL_PLAN_COLLECTIVE_LAYOUT_H_
#define GRADCUBE_CONTROL_PLAN_COLLECTIVE_LAYOUT_H_

#include <array>
#include <cstdint>

#include "control/plan/byte_range.h"
#include "control/plan/thread_schedule.h"

namespace gradcube::control {

// The bytes of one segment.
struct SegmentRange {
  std::uint64_t begin = 0;
  std::uint32_t bytes = 0;

  bool operator==(const SegmentRange&) const = default;
};

class CollectiveLayout {
 public:
  CollectiveLayout() = default;

  // Of a buffer of `bytes` for which positions_fit(). segment_bytes: the most that a segment
  // carries, a multiple of kUnitBytes. first[w]: the sequence of this collective's first segment in
  // the streams of step w.
  CollectiveLayout(const ThreadSchedule& schedule, std::uint64_t bytes, std::uint32_t segment_bytes,
                   const std::array<std::uint64_t, kMaxSteps>& first);

  // Whether the positions of a collective of `bytes`, and of any shorter one, fit into the 32 bits
  // that they have. To be checked at set-up, against the largest buffer that there can be.
  static bool positions_fit(const ThreadSchedule& schedule, std::uint64_t bytes,
                            std::uint32_t segment_bytes);

  std::uint64_t first(unsigned w) const { return first_[w]; }
  std::uint64_t end(unsigned w) const { return end_[w]; }

  // The segment at position q of the send stream (w, r); with r = 0, of the receive stream of w.
  SegmentRange segment(const ThreadSchedule& schedule, unsigned w, unsigned r,
                       std::uint32_t q) const;

 private:
  std::uint64_t buffer_bytes_ = 0;
  std::uint32_t segments_per_piece_ = 1;
  std::array<std::uint64_t, kMaxSteps> first_{};
  std::array<std::uint64_t, kMaxSteps> end_{};
  // active_[w]: what this rank still works on when step w begins.
  std::array<UnitRange, kMaxSteps + 1> active_{};
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_COLLECTIVE_LAYOUT_H_
