// The contributions to one step's receive stream that wait to be added, and which of its segments
// have been reduced.
//
// A segment is reduced once all neighbours' contributions are here: in one fused pass, in the order
// of the digits (aggregation/kernels.h), so the sum has the same bits in every run. A contribution
// that comes early waits here in the mbuf it came in. All neighbours number one segment alike, and
// none may run more than kWindow ahead of the first segment that is not reduced yet: that bounds
// what waits, whatever the gradient's size.
//
// Ownership: the window owns the mbufs it holds, and frees them in finish() and clear(). One
// thread: the engine's.
#ifndef GRADCUBE_DATAPLANE_ENGINE_REDUCE_WINDOW_H_
#define GRADCUBE_DATAPLANE_ENGINE_REDUCE_WINDOW_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <rte_mbuf.h>
#include <vector>

#include "dataplane/engine/flows/contribution.h"
#include "protocol/receive_window.h"

namespace gradcube::dataplane {

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
    const unsigned index = sequence % kWindow;
    held_[index * neighbours_ + offset - 1] = contribution;
    ++arrived_[index];
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
    const Contribution& held = contribution(sequence, offset);
    return held.packet != nullptr ? &held : nullptr;
  }

  // Frees the segment's contributions and marks it reduced; base moves over the reduced prefix.
  void finish(std::uint64_t sequence) {
    const unsigned index = sequence % kWindow;
    release(index);
    reduced_[index] = true;
    while (reduced_[base_ % kWindow]) {
      reduced_[base_ % kWindow] = false;
      ++base_;
    }
  }

  // Frees all that waits and begins again at sequence 0.
  void clear() {
    for (unsigned index = 0; !held_.empty() && index < kWindow; ++index) release(index);
    reduced_.reset();
    base_ = 0;
  }

 private:
  void release(unsigned index) {
    for (unsigned i = index * neighbours_; i < (index + 1) * neighbours_; ++i) {
      if (held_[i].packet != nullptr) rte_pktmbuf_free(held_[i].packet);
      held_[i].packet = nullptr;
    }
    arrived_[index] = 0;
  }

  unsigned neighbours_;
  std::uint64_t base_ = 0;
  std::bitset<kWindow> reduced_;
  std::array<std::uint16_t, kWindow> arrived_{};
  std::vector<Contribution> held_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_REDUCE_WINDOW_H_
