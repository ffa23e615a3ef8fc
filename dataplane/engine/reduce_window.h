// The contributions to one step's inward stream that wait to be added, and the memory of which have
// been.
//
// A segment is reduced once all neighbours' contributions are there: in one fused pass, in the order
// of the digits (aggregation/kernels.h), so the sum is the same bits in every run. A contribution
// that comes early waits here in the mbuf it came in. All neighbours number one segment alike, and
// none may run more than kWindow ahead of the first segment not yet reduced: that bounds what waits,
// whatever the gradient's size.
//
// Ownership: the window owns the mbufs it holds; take() hands them to the caller. One thread: the
// engine's.
#ifndef GRADCUBE_DATAPLANE_ENGINE_REDUCE_WINDOW_H_
#define GRADCUBE_DATAPLANE_ENGINE_REDUCE_WINDOW_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <rte_mbuf.h>
#include <vector>

#include "protocol/receive_window.h"

namespace gradcube::dataplane {

// One neighbour's contribution to one segment.
struct Contribution {
  rte_mbuf* packet = nullptr;
  const std::uint8_t* payload = nullptr;
  std::uint16_t bytes = 0;
  std::uint8_t type_and_operation = 0;
  std::uint32_t count =
      0;  // the low 32 bits of the collective's element count, as its sender sees it
};

class ReduceWindow {
 public:
  static constexpr unsigned kWindow = protocol::ReceiveWindow::kWindow;

  explicit ReduceWindow(unsigned neighbours)
      : neighbours_(neighbours), held_(static_cast<std::size_t>(kWindow) * neighbours) {}
  ~ReduceWindow() { clear(); }
  ReduceWindow(const ReduceWindow&) = delete;
  ReduceWindow& operator=(const ReduceWindow&) = delete;
  ReduceWindow(ReduceWindow&&) = default;

  // The first sequence not yet reduced.
  std::uint64_t base() const { return base_; }

  bool reduced(std::uint64_t sequence) const {
    return sequence < base_ || (sequence < base_ + kWindow && reduced_[sequence % kWindow]);
  }

  // offset: the neighbour's, 1..neighbours. The caller has seen that the sequence lies in [base,
  // base + kWindow) and that this neighbour's contribution is not here yet.
  void hold(std::uint64_t sequence, unsigned offset, const Contribution& contribution) {
    const unsigned slot = sequence % kWindow;
    held_[slot * neighbours_ + offset - 1] = contribution;
    ++arrived_[slot];
  }

  bool all_arrived(std::uint64_t sequence) const {
    return sequence >= base_ && sequence < base_ + kWindow &&
           arrived_[sequence % kWindow] == neighbours_;
  }

  const Contribution& contribution(std::uint64_t sequence, unsigned offset) const {
    return held_[(sequence % kWindow) * neighbours_ + offset - 1];
  }

  // The neighbour's contribution while it waits to be reduced; null when it is not here.
  const Contribution* waiting(std::uint64_t sequence, unsigned offset) const {
    if (sequence < base_ || sequence >= base_ + kWindow) return nullptr;
    const Contribution& slot = contribution(sequence, offset);
    return slot.packet != nullptr ? &slot : nullptr;
  }

  // Frees the segment's contributions and marks it reduced; base moves over the reduced prefix.
  void finish(std::uint64_t sequence) {
    const unsigned slot = sequence % kWindow;
    release(slot);
    reduced_[slot] = true;
    while (reduced_[base_ % kWindow]) {
      reduced_[base_ % kWindow] = false;
      ++base_;
    }
  }

  // Frees all that waits and begins again at sequence 0.
  void clear() {
    for (unsigned slot = 0; !held_.empty() && slot < kWindow; ++slot) release(slot);
    reduced_.reset();
    base_ = 0;
  }

 private:
  void release(unsigned slot) {
    for (unsigned i = slot * neighbours_; i < (slot + 1) * neighbours_; ++i) {
      if (held_[i].packet != nullptr) rte_pktmbuf_free(held_[i].packet);
      held_[i] = {};
    }
    arrived_[slot] = 0;
  }

  unsigned neighbours_;
  std::uint64_t base_ = 0;
  std::bitset<kWindow> reduced_;
  std::array<std::uint16_t, kWindow> arrived_{};
  std::vector<Contribution> held_;
};

}  // namespace gradcube::dataplane

#endif
