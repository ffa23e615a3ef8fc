// The mail of one server's trainers that has not ended, by its number: a place in this table, which
// is used again when the mail has ended. So the table is never larger than what the trainers' rings
// can have in flight.
//
// Written by who takes submissions: the leader engine, or the control thread while no engine knows
// the session. Any thread may ask any().
#ifndef GRADCUBE_DATAPLANE_ENGINE_MAIL_TABLE_H_
#define GRADCUBE_DATAPLANE_ENGINE_MAIL_TABLE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "dataplane/engine/mail_request.h"

namespace gradcube::dataplane {

class MailTable {
 public:
  // Allocates while the table grows.
  void add(const MailRequest& request) {
    std::uint32_t number = 0;
    if (free_.empty()) {
      number = static_cast<std::uint32_t>(places_.size());
      places_.emplace_back(request);
    } else {
      number = free_.back();
      free_.pop_back();
      places_[number] = request;
    }
    fresh_.push_back(number);
    in_flight_.fetch_add(1, std::memory_order_release);
  }
  void remove(std::uint32_t number) {
    places_[number].reset();
    free_.push_back(number);
    in_flight_.fetch_sub(1, std::memory_order_release);
  }

  // Each number once, in the order in which they were added.
  std::optional<std::uint32_t> next_fresh() {
    if (fresh_.empty()) return std::nullopt;
    const std::uint32_t number = fresh_.front();
    fresh_.pop_front();
    return number;
  }

  const MailRequest& at(std::uint32_t number) const { return *places_[number]; }
  bool any() const { return in_flight_.load(std::memory_order_acquire) != 0; }

  // function(number) may remove it.
  template <typename Function>
  void for_each(Function&& function) {
    for (std::uint32_t number = 0; number < places_.size(); ++number) {
      if (places_[number].has_value()) function(number);
    }
  }
  void forget_fresh() { fresh_.clear(); }

 private:
  std::vector<std::optional<MailRequest>> places_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> fresh_;
  std::atomic<std::uint64_t> in_flight_{0};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MAIL_TABLE_H_
