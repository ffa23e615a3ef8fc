// Which receive of a trainer on one server takes which send of a trainer on another: that of the
// same two trainers and the same tag, in the order of submission on both sides.
//
// Kept at the sends' server. The receives come as WANTS, which their server numbers, and which a
// flow may bring in another order than they were sent in. So a want counts only when all that was
// sent before it is here: settle().
//
// Looking is linear in what waits between the two servers. Memory: that of what waits; wants are at
// most as many as the trainers of the other server can have in flight, which accept() ensures.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MAIL_MATCHER_H_
#define GRADCUBE_DATAPLANE_ENGINE_MAIL_MATCHER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace gradcube::dataplane {

// The trainers by their numbers among those of their servers.
struct MailAddress {
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  std::uint64_t tag = 0;
  bool operator==(const MailAddress&) const = default;
};

// A receive that waits for its send.
struct Want {
  std::uint64_t sequence = 0;  // of the segment that told of it
  std::uint32_t number = 0;    // of the receive at its server
  MailAddress address;
  std::uint64_t room = 0;  // bytes that it takes at most
};

class MailMatcher {
 public:
  std::size_t wants() const { return wants_.size(); }
  bool any_unsettled() const { return settled_ != wants_.size(); }

  // A send, behind all earlier ones. The want that it meets, if there is one; else it waits.
  std::optional<Want> add_send(std::uint32_t number, const MailAddress& address) {
    const auto end = wants_.begin() + static_cast<std::ptrdiff_t>(settled_);
    const auto met = std::find_if(wants_.begin(), end,
                                  [&address](const Want& want) { return want.address == address; });
    if (met == end) {
      sends_.push_back({number, address});
      return std::nullopt;
    }
    const Want want = *met;
    wants_.erase(met);
    --settled_;
    return want;
  }

  void add_want(const Want& want) {
    const auto after =
        std::upper_bound(wants_.begin(), wants_.end(), want,
                         [](const Want& a, const Want& b) { return a.sequence < b.sequence; });
    wants_.insert(after, want);
  }

  // All segments below this sequence are here. Calls meet(send's number, want) for each want that
  // counts now and has a send.
  template <typename Meet>
  void settle(std::uint64_t sequence, Meet&& meet) {
    while (settled_ < wants_.size() && wants_[settled_].sequence < sequence) {
      const Want& want = wants_[settled_];
      const auto met = std::find_if(sends_.begin(), sends_.end(), [&want](const Send& send) {
        return send.address == want.address;
      });
      if (met == sends_.end()) {
        ++settled_;
        continue;
      }
      meet(met->number, want);
      sends_.erase(met);
      wants_.erase(wants_.begin() + static_cast<std::ptrdiff_t>(settled_));
    }
  }

 private:
  struct Send {
    std::uint32_t number;
    MailAddress address;
  };
  std::deque<Send> sends_;   // without a want, in their order
  std::vector<Want> wants_;  // without a send, by sequence
  std::size_t settled_ = 0;  // so many of wants_, from the front, count
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MAIL_MATCHER_H_
