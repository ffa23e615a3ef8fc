// A line of frames inside an emulated switch, first in, first out.
//
// It does not own the packets: what is left in it at the end is its owner's to free. Its memory is
// not initialized, so a switch of many ports takes only what its frames have needed. One thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_FRAME_LINE_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_FRAME_LINE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <rte_mbuf.h>
#include <utility>

namespace gradcube::dataplane {

struct FrameInLine {
  rte_mbuf* packet;
  std::int64_t time;  // of its departure; while it waits for the wire, of its arrival
  std::uint32_t bytes;
  std::uint16_t queue;  // of its receiver
  std::uint16_t from;
};

class FrameLine {
 public:
  // Holds at most `capacity` frames, rounded up to a power of two.
  explicit FrameLine(std::uint32_t capacity)
      : mask_(std::bit_ceil(capacity) - 1),
        frames_(std::make_unique_for_overwrite<FrameInLine[]>(std::size_t{mask_} + 1)) {}
  FrameLine(FrameLine&& other) noexcept
      : head_(std::exchange(other.head_, 0)),
        tail_(std::exchange(other.tail_, 0)),
        mask_(other.mask_),
        frames_(std::move(other.frames_)) {}
  FrameLine& operator=(FrameLine&&) = delete;

  bool empty() const { return head_ == tail_; }
  std::uint32_t size() const { return tail_ - head_; }
  std::uint32_t capacity() const { return mask_ + 1; }

  // The caller has checked that there is room.
  void push(const FrameInLine& frame) { frames_[tail_++ & mask_] = frame; }
  // Below size(): 0 is the first one.
  const FrameInLine& operator[](std::uint32_t place) const {
    return frames_[(head_ + place) & mask_];
  }
  // Takes out the first `count`. An empty line starts again at its beginning: light traffic touches
  // the same few cache lines.
  void pop(std::uint32_t count) {
    head_ += count;
    if (head_ == tail_) head_ = tail_ = 0;
  }

 private:
  // Free-running positions.
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t mask_;
  std::unique_ptr<FrameInLine[]> frames_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_FRAME_LINE_H_
