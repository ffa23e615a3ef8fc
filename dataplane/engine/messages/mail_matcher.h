// Which receive of a trainer on one server takes which send of a trainer on another: that of the
// same two trainers and the same tag, in the order of submission on both sides.
//
// Kept at the sends' server. The receives come as WANTS, which their server numbers, and which a
// flow may bring in another order than they were sent in. So a want counts only when all that was
// sent before it is here: settle(). The same holds for its WITHDRAWAL, which takes it out again,
// unless it has met a send before.
//
// What waits stands in a hash table by its address, first come, first served; of one address either
// sends wait or wants. So each call takes the same time however much waits. The hash has a key that
// no other server knows: tags that all fall into one place cannot be chosen.
//
// Memory: that of the most that can wait, which the constructor allocates; what has never waited is
// not touched. Wants are at most as many as the trainers of the other server can have in flight,
// and their numbers are below that, which MailChannel::accept() ensures; sends those of this one.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAIL_MATCHER_H_
#define GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAIL_MATCHER_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "aggregation/element.h"
#include "protocol/receive_window.h"

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
  aggregation::DataType dtype = aggregation::DataType::bytes;
};

class MailMatcher {
 public:
  // The most of each that wait at a time. key: of the hash.
  MailMatcher(std::size_t most_sends, std::size_t most_wants, std::uint64_t key)
      : key_(key),
        buckets_(std::bit_ceil(std::max<std::size_t>(1, (most_sends + most_wants) / 4)), kNone),
        places_{std::vector<std::uint32_t>(most_wants, kNone),
                std::vector<std::uint32_t>(most_sends, kNone)} {
    waiting_.reserve(most_sends + most_wants);
    unsettled_places_.fill(kNone);
  }

  // That wait here, settled or not.
  std::size_t wants() const { return wants_; }
  bool any_unsettled() const { return unsettled_ != 0; }
  // What all calls so far have compared.
  std::uint64_t looks() const { return looks_; }

  // A send, behind all earlier ones. The want that it meets, if there is one; else it waits.
  std::optional<Want> add_send(std::uint32_t number, const MailAddress& address) {
    std::uint32_t& first = first_of(address);
    if (first != kNone && !waiting_[first].sends) {
      --wants_;
      const Waiting& met = waiting_[take_first(first)];
      return Want{0, met.number, met.address, met.room, met.dtype};
    }
    append(first, make({address, 0, number, true}));
    return std::nullopt;
  }
  // It waits no more. False: it has met its want.
  bool take_out_send(std::uint32_t number) { return take_out(number, true); }

  // At most ReceiveWindow::kWindow sequences lie between those that are not settled.
  void add_want(const Want& want) {
    await(want.sequence, make({want.address, want.room, want.number, false, want.dtype}));
    ++wants_;
  }
  // Of the want of this number that was sent last before it.
  void add_withdrawal(std::uint64_t sequence, std::uint32_t number) {
    await(sequence, kWithdrawal | number);
  }

  // All segments below this sequence are here. Calls meet(send's number, want) for each want that
  // counts now and has a send, and withdrawn(want's number) for each that waits no more;
  // waits(want), for each that has no send, says whether it waits for one.
  template <typename Meet, typename Withdrawn, typename Waits>
  void settle(std::uint64_t sequence, Meet&& meet, Withdrawn&& withdrawn, Waits&& waits) {
    for (; unsettled_ != 0 && next_ < sequence; ++next_) {
      const std::uint32_t place =
          std::exchange(unsettled_places_[place_of(next_)], std::uint32_t{kNone});
      if (place == kNone) continue;
      --unsettled_;
      if ((place & kWithdrawal) == 0) {
        settle_one(next_, place, meet, waits);
        continue;
      }
      const std::uint32_t number = place & ~kWithdrawal;
      if (!take_out(number, false)) continue;
      --wants_;
      withdrawn(number);
    }
  }
  template <typename Meet, typename Withdrawn>
  void settle(std::uint64_t sequence, Meet&& meet, Withdrawn&& withdrawn) {
    settle(sequence, meet, withdrawn, [](const Want&) { return true; });
  }

  // A sweep looks at all that waits now, in parts. False: one was under way, which begins anew.
  bool begin_sweep() { return std::exchange(unswept_, buckets_.size()) == 0; }
  // The sends and settled wants that are chosen(whether it is a send, address) wait no more: calls
  // taken(the same, number) for each. Takes at most so many steps, which it counts down, and as
  // many in all as there are places and what is taken. True: it is over.
  template <typename Chosen, typename Taken>
  bool sweep(std::size_t& steps, Chosen&& chosen, Taken&& taken) {
    for (; unswept_ != 0 && steps != 0; --steps) {
      if (!take_one(buckets_[unswept_ - 1], chosen, taken)) --unswept_;
    }
    return unswept_ == 0;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kWithdrawal = std::uint32_t{1} << 31;  // in unsettled_places_

  // The first one of its address stands in a bucket, and the others behind it.
  struct Waiting {
    MailAddress address;
    std::uint64_t room;  // of a want
    std::uint32_t number;
    bool sends;
    aggregation::DataType dtype = aggregation::DataType::bytes;  // of a want
    std::uint32_t behind = kNone;   // of the same address; of what is free: the next one
    std::uint32_t before = kNone;   // of the same address, of all but a first one
    std::uint32_t last = kNone;     // of a first one: the last of its address
    std::uint32_t chained = kNone;  // of a first one: the next first one of its bucket
  };

  static std::size_t place_of(std::uint64_t sequence) {
    return static_cast<std::size_t>(sequence % protocol::ReceiveWindow::kWindow);
  }

  template <typename Meet, typename Waits>
  void settle_one(std::uint64_t sequence, std::uint32_t place, Meet& meet, Waits& waits) {
    const Waiting& want = waiting_[place];
    const Want met{sequence, want.number, want.address, want.room, want.dtype};
    std::uint32_t& first = first_of(want.address);
    if (first == kNone || !waiting_[first].sends) {
      if (waits(met)) return append(first, place);
      release(place);
      --wants_;
      return;
    }
    const std::uint32_t send = waiting_[take_first(first)].number;
    release(place);
    --wants_;
    meet(send, met);
  }

  // False: nothing in this bucket is chosen.
  template <typename Chosen, typename Taken>
  bool take_one(std::uint32_t& bucket, Chosen& chosen, Taken& taken) {
    for (std::uint32_t* link = &bucket; *link != kNone; link = &waiting_[*link].chained) {
      const bool sends = waiting_[*link].sends;
      if (!chosen(sends, waiting_[*link].address)) continue;
      if (!sends) --wants_;
      taken(sends, waiting_[take_first(*link)].number);
      return true;
    }
    return false;
  }

  void await(std::uint64_t sequence, std::uint32_t what) {
    next_ = unsettled_ == 0 ? sequence : std::min(next_, sequence);
    unsettled_places_[place_of(sequence)] = what;
    ++unsettled_;
  }

  // What waits under this number, whether or not others are before it. False: nothing does.
  bool take_out(std::uint32_t number, bool sends) {
    const std::uint32_t place = places_[sends ? 1 : 0][number];
    if (place == kNone) return false;
    std::uint32_t& first = first_of(waiting_[place].address);
    if (first == place) {
      take_first(first);
      return true;
    }
    const Waiting& taken = waiting_[place];
    waiting_[taken.before].behind = taken.behind;
    (taken.behind == kNone ? waiting_[first].last : waiting_[taken.behind].before) = taken.before;
    leave(place);
    return true;
  }

  std::uint32_t make(const Waiting& waiting) {
    if (free_ == kNone) {
      waiting_.push_back(waiting);
      return static_cast<std::uint32_t>(waiting_.size() - 1);
    }
    const std::uint32_t place = free_;
    free_ = waiting_[place].behind;
    waiting_[place] = waiting;
    return place;
  }
  // It waited under its number.
  void leave(std::uint32_t place) {
    place_under(waiting_[place]) = kNone;
    release(place);
  }
  std::uint32_t& place_under(const Waiting& waiting) {
    return places_[waiting.sends ? 1 : 0][waiting.number];
  }
  // What it says can be read until the next make().
  void release(std::uint32_t place) {
    waiting_[place].behind = free_;
    free_ = place;
  }

  // The link to the first one of this address, or where it would be.
  std::uint32_t& first_of(const MailAddress& address) {
    std::uint32_t* link = &buckets_[bucket_of(address)];
    while (*link != kNone) {
      ++looks_;
      Waiting& first = waiting_[*link];
      if (first.address == address) break;
      link = &first.chained;
    }
    return *link;
  }
  void append(std::uint32_t& first, std::uint32_t place) {
    if (first == kNone) {
      first = place;
    } else {
      waiting_[place].before = waiting_[first].last;
      waiting_[waiting_[first].last].behind = place;
    }
    waiting_[first].last = place;
    place_under(waiting_[place]) = place;
  }
  std::uint32_t take_first(std::uint32_t& first) {
    const std::uint32_t place = first;
    const Waiting& taken = waiting_[place];
    if (taken.behind == kNone) {
      first = taken.chained;
    } else {
      first = taken.behind;
      waiting_[first].last = taken.last;
      waiting_[first].chained = taken.chained;
    }
    leave(place);
    return place;
  }

  std::size_t bucket_of(const MailAddress& address) const {
    const std::uint64_t trainers = std::uint64_t{address.from} << 8 | address.to;
    return static_cast<std::size_t>(mixed(mixed(address.tag ^ key_) + trainers)) &
           (buckets_.size() - 1);
  }
  // Each bit of the result depends on all bits (the last step of SplitMix64).
  static std::uint64_t mixed(std::uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
  }

  std::uint64_t key_;
  std::vector<std::uint32_t> buckets_;  // a power of two
  std::vector<Waiting> waiting_;        // never longer than its capacity
  std::uint32_t free_ = kNone;          // places in waiting_
  std::size_t wants_ = 0;
  std::size_t unswept_ = 0;  // buckets, the first ones, that the sweep under way has not seen
  std::uint64_t looks_ = 0;
  // By the numbers of wants and of sends: where they wait.
  std::array<std::vector<std::uint32_t>, 2> places_;
  // Wants and withdrawals that do not count yet, by sequence; none below next_.
  std::array<std::uint32_t, protocol::ReceiveWindow::kWindow> unsettled_places_{};
  std::size_t unsettled_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MESSAGES_MAIL_MATCHER_H_
