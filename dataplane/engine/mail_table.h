// The mail of one server's trainers that has not ended, by its number: a place in this table, which
// is used again when the mail has ended. So the table is never larger than what the trainers' rings
// can have in flight, for which the constructor allocates.
//
// Written by who takes submissions: the leader engine, or the control thread while no engine knows
// the session. Any thread may ask any().
#ifndef GRADCUBE_DATAPLANE_ENGINE_MAIL_TABLE_H_
#define GRADCUBE_DATAPLANE_ENGINE_MAIL_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/engine/mail_request.h"

namespace gradcube::dataplane {

class MailTable {
 public:
  // most: that is in flight at a time.
  explicit MailTable(std::size_t most) { places_.reserve(most); }

  void add(const MailRequest& request) {
    std::uint32_t number = free_;
    if (number == kNone) {
      number = static_cast<std::uint32_t>(places_.size());
      places_.emplace_back();
    } else {
      free_ = places_[number].next;
    }
    places_[number] = {request, kNone};
    (first_fresh_ == kNone ? first_fresh_ : places_[last_fresh_].next) = number;
    last_fresh_ = number;
    in_flight_.fetch_add(1, std::memory_order_release);
  }
  // Of what was fresh once.
  void remove(std::uint32_t number) {
    places_[number] = {std::nullopt, free_};
    free_ = number;
    in_flight_.fetch_sub(1, std::memory_order_release);
  }

  // Each number once, in the order in which they were added.
  std::optional<std::uint32_t> next_fresh() {
    if (first_fresh_ == kNone) return std::nullopt;
    const std::uint32_t number = first_fresh_;
    first_fresh_ = places_[number].next;
    return number;
  }

  const MailRequest& at(std::uint32_t number) const { return *places_[number].request; }
  bool any() const { return in_flight_.load(std::memory_order_acquire) != 0; }

  // function(number) may remove it.
  template <typename Function>
  void for_each(Function&& function) {
    for (std::uint32_t number = 0; number < places_.size(); ++number) {
      if (places_[number].request.has_value()) function(number);
    }
  }
  void forget_fresh() { first_fresh_ = kNone; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Place {
    std::optional<MailRequest> request;
    std::uint32_t next = kNone;  // of what is free, or of what is fresh
  };
  std::vector<Place> places_;
  std::uint32_t free_ = kNone;
  std::uint32_t first_fresh_ = kNone;
  std::uint32_t last_fresh_ = kNone;
  std::atomic<std::uint64_t> in_flight_{0};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MAIL_TABLE_H_
