// Which of a server's links work, as all of its engines see it.
//
// The engine that greets the neighbours (link_keeper.h) finds out and writes it here; the others
// look at version() once in an iteration. What comes over a link may come to any engine, so the
// engines' counts of it are found here, too.
//
// A link is named by the hop over it. At first all work. One that loses much is
// mostly down, but something comes over it: it is heard.
//
// Threads: set() and publish() by the greeting engine; add() before any engine runs; the rest by
// anyone.
#ifndef GRADCUBE_DATAPLANE_LINKS_SERVER_LINKS_H_
#define GRADCUBE_DATAPLANE_LINKS_SERVER_LINKS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "bcube_forwarding/address.h"
#include "bcube_forwarding/route.h"
#include "dataplane/links/neighbour_counters.h"

namespace gradcube::dataplane {

// By level and digit.
using NeighbourRows = std::vector<std::deque<NeighbourCounters>>;

class ServerLinks {
 public:
  explicit ServerLinks(const bcube::AddressSpace& space) {
    for (unsigned level = 0; level < space.levels(); ++level)
      for (auto* states : {&down_, &silent_}) states->emplace_back(space.hop_digits(level));
  }

  bool up(bcube::Hop link) const {
    return !down_[link.level][link.digit].load(std::memory_order_relaxed);
  }
  bool heard(bcube::Hop link) const {
    return !silent_[link.level][link.digit].load(std::memory_order_relaxed);
  }
  // Grows when a link has gone down or come up, fallen silent or been heard again.
  std::uint32_t version() const { return version_.load(std::memory_order_acquire); }

  // Whether that changes anything.
  bool set(bcube::Hop link, bool up, bool heard) {
    const bool was_down = down_[link.level][link.digit].exchange(!up, std::memory_order_relaxed);
    const bool was_silent =
        silent_[link.level][link.digit].exchange(!heard, std::memory_order_relaxed);
    return was_down == up || was_silent == heard;
  }
  void publish() { version_.fetch_add(1, std::memory_order_release); }

  // An engine's counters, which must outlive this object's use.
  void add(const NeighbourRows& rows) { rows_.push_back(&rows); }
  // Frames that came over the link to any engine, and through no relay.
  std::uint64_t direct_frames(bcube::Hop link) const {
    std::uint64_t sum = 0;
    for (const NeighbourRows* rows : rows_) sum += (*rows)[link.level][link.digit].direct.value();
    return sum;
  }

 private:
  std::vector<std::deque<std::atomic<bool>>> down_;  // by level and digit
  std::vector<std::deque<std::atomic<bool>>> silent_;
  std::atomic<std::uint32_t> version_{0};
  std::vector<const NeighbourRows*> rows_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_SERVER_LINKS_H_
