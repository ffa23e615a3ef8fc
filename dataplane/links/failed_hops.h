// Links of other servers that relays have said are down.
//
// A relay tells the source of a frame that was to take such a link (protocol/link_frame.h). The
// source keeps away from the link for kKept; then it uses it again, and is told again if it is
// still down. At most kMost are known: who says more hides the oldest.
//
// Owned and used by one engine; no allocation.
#ifndef GRADCUBE_DATAPLANE_LINKS_FAILED_HOPS_H_
#define GRADCUBE_DATAPLANE_LINKS_FAILED_HOPS_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "bcube_forwarding/address.h"
#include "protocol/time.h"

namespace gradcube::dataplane {

class FailedHops {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr protocol::Nanoseconds kKept = 1000 * protocol::kMillisecond;

  bool has(bcube::ServerId from, bcube::ServerId to) const {
    return std::any_of(begin(), end(), [&](const Failed& failed) {
      return failed.from == from && failed.to == to;
    });
  }
  // False: it is known already, and kept no longer than before.
  bool add(bcube::ServerId from, bcube::ServerId to, protocol::Nanoseconds now) {
    if (has(from, to)) return false;
    if (count_ == kMost) forget_first(1);
    failed_[count_++] = {from, to, now + kKept};
    return true;
  }
  // Whether there was one whose time is over.
  bool forget(protocol::Nanoseconds now) {
    std::size_t over = 0;
    while (over < count_ && failed_[over].until <= now) ++over;
    forget_first(over);
    return over != 0;
  }
  // When the next one's time is over; kNever if there is none.
  protocol::Nanoseconds next_over() const {
    return count_ == 0 ? protocol::kNever : failed_[0].until;
  }

 private:
  struct Failed {
    bcube::ServerId from = 0;
    bcube::ServerId to = 0;
    protocol::Nanoseconds until = 0;
  };
  const Failed* begin() const { return failed_.data(); }
  const Failed* end() const { return failed_.data() + count_; }
  void forget_first(std::size_t count) {
    std::copy(begin() + count, end(), failed_.data());
    count_ -= count;
  }

  std::array<Failed, kMost> failed_{};  // the oldest first
  std::size_t count_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_FAILED_HOPS_H_
