// The late frames of one output port, for emulated reordering.
//
// Each frame waits until a few later frames have passed, or until its deadline if no more frames
// come. So reordering never becomes loss. Owns the frames that it holds. One thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_REORDER_BUFFER_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_REORDER_BUFFER_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <rte_mbuf.h>
#include <utility>

#include "dataplane/host/clock.h"

namespace gradcube::dataplane {

class ReorderBuffer {
 public:
  struct Held {
    rte_mbuf* packet = nullptr;
    std::uint16_t queue = 0;
    std::uint16_t frames_to_pass = 0;
    std::int64_t deadline = 0;
  };
  // A larger buffer would only be a queue that drains late.
  static constexpr std::uint32_t kCapacity = 4;

  ReorderBuffer() = default;
  ~ReorderBuffer() {
    for (std::uint32_t i = 0; i < used_; ++i) rte_pktmbuf_free(held_[i].packet);
  }
  ReorderBuffer(ReorderBuffer&& other) noexcept
      : held_(other.held_), used_(std::exchange(other.used_, 0)) {}
  ReorderBuffer& operator=(ReorderBuffer&&) = delete;

  // False if the buffer is full: the frame stays with the caller.
  bool hold(const Held& frame) {
    if (used_ == kCapacity) return false;
    held_[used_++] = frame;
    return true;
  }

  // A frame has passed. Calls `release` with each held frame that enough frames have now passed.
  template <typename Release>
  void passed(Release&& release) {
    release_if([](Held& held) { return --held.frames_to_pass == 0; }, release);
  }
  // Calls `release` with each held frame whose deadline has come.
  template <typename Release>
  void expire(std::int64_t now, Release&& release) {
    release_if([now](const Held& held) { return held.deadline <= now; }, release);
  }

  std::int64_t next_deadline() const {
    std::int64_t next = kNever;
    for (std::uint32_t i = 0; i < used_; ++i) next = std::min(next, held_[i].deadline);
    return next;
  }

 private:
  template <typename Ready, typename Release>
  void release_if(Ready&& ready, Release&& release) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < used_; ++i) {
      Held held = held_[i];
      if (ready(held)) {
        release(held);
      } else {
        held_[kept++] = held;
      }
    }
    used_ = kept;
  }

  std::array<Held, kCapacity> held_{};
  std::uint32_t used_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_REORDER_BUFFER_H_
