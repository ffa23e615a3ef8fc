// Results for collectives that this server's trainer has not submitted yet: they wait in the mbufs
// they came in, as early contributions do (reduce_window.h). A flow's credit bounds them.
//
// Ownership: it owns the mbufs it holds until release() or clear(). One thread: the engine's.
#ifndef GRADCUBE_DATAPLANE_ENGINE_EARLY_RESULTS_H_
#define GRADCUBE_DATAPLANE_ENGINE_EARLY_RESULTS_H_

#include <cstdint>
#include <rte_mbuf.h>
#include <vector>

#include "dataplane/engine/flows/contribution.h"

namespace gradcube::dataplane {

class EarlyResults {
 public:
  // window: the most that a flow may be granted beyond what is consumed.
  EarlyResults(unsigned flows, unsigned window)
      : window_(window), held_(static_cast<std::size_t>(window) * flows) {}
  ~EarlyResults() { clear(); }
  EarlyResults(const EarlyResults&) = delete;
  EarlyResults& operator=(const EarlyResults&) = delete;

  bool any() const { return count_ != 0; }
  unsigned window() const { return window_; }

  // The sequence lies in the flow's window and is not here yet.
  void hold(unsigned flow, std::uint64_t sequence, const Contribution& result) {
    held_[index(flow, sequence)] = result;
    ++count_;
  }
  // Null if it is not here.
  const Contribution* find(unsigned flow, std::uint64_t sequence) const {
    const Contribution& held = held_[index(flow, sequence)];
    return held.packet != nullptr && held.sequence == sequence ? &held : nullptr;
  }
  void release(unsigned flow, std::uint64_t sequence) { release(held_[index(flow, sequence)]); }
  void clear() {
    for (std::size_t i = 0; count_ != 0 && i < held_.size(); ++i) {
      if (held_[i].packet != nullptr) release(held_[i]);
    }
  }

 private:
  std::size_t index(unsigned flow, std::uint64_t sequence) const {
    return std::size_t{flow} * window_ + sequence % window_;
  }
  void release(Contribution& held) {
    rte_pktmbuf_free(held.packet);
    held = {};
    --count_;
  }

  unsigned window_;
  std::size_t count_ = 0;
  std::vector<Contribution> held_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_EARLY_RESULTS_H_
