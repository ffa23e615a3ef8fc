// The mail of one server's trainers that has not ended, by its number: a place in this table, which
// is used again when the mail has ended. So the table is never larger than what the trainers' rings
// can have in flight, for which the constructor allocates.
//
// Written by who takes submissions: the leader engine, or the control thread while no engine knows
// the session. Any thread may ask any(), counts(), unanswered() and deserters().
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_MAIL_TABLE_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_MAIL_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/engine/session/linked_queue.h"
#include "dataplane/engine/session/mail_request.h"
#include "dataplane/host/counter_table.h"

namespace gradcube::dataplane {

class MailTable {
 public:
  // trainers: of the server. most: that is in flight at a time.
  MailTable(unsigned trainers, std::size_t most) : counts_(trainers) { slots_.reserve(most); }

  // Its number.
  std::uint32_t add(const MailRequest& request) {
    std::uint32_t number = free_;
    if (number == kNone) {
      number = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      free_ = slots_[number].next;
    }
    slots_[number] = {.request = request, .state = State::fresh};
    fresh_.push(slots_, number);
    in_flight_.fetch_add(1, std::memory_order_release);
    add(counts_[request.local].waiting, 1);
    return number;
  }
  // The other trainer has submitted its part.
  void begin(std::uint32_t number) {
    Slot& slot = slots_[number];
    if (slot.met) return;
    slot.met = true;
    add(counts_[slot.request->local].waiting, -1);
    add(counts_[slot.request->local].begun, 1);
  }
  void remove(std::uint32_t number) {
    const Slot& slot = slots_[number];
    AtomicCounts& counts = counts_[slot.request->local];
    add(slot.met ? counts.begun : counts.waiting, -1);
    add(counts.done, 1);
    leave_queue(number);
    slots_[number] = {.next = free_};
    free_ = number;
    in_flight_.fetch_sub(1, std::memory_order_release);
  }

  // Each number once, in the order in which they were added.
  std::optional<std::uint32_t> next_fresh() { return next(fresh_); }
  std::size_t fresh() const { return fresh_.size(); }
  // That next_fresh() will return; there must be one.
  std::uint32_t first_fresh() const { return fresh_.front(); }
  // Nobody has asked for it by next_fresh().
  bool is_fresh(std::uint32_t number) const { return slots_[number].state == State::fresh; }

  // Its trainer wants it back; it is not fresh.
  void withdraw(std::uint32_t number) {
    if (slots_[number].state == State::withdrawn) return;
    slots_[number].state = State::withdrawn;
    withdrawn_.push(slots_, number);
  }
  // Each of those once.
  std::optional<std::uint32_t> next_withdrawn() { return next(withdrawn_); }

  // How far a trainer's messages have come.
  struct Counts {
    std::uint64_t waiting = 0;  // for the other trainer
    std::uint64_t begun = 0;    // and have not ended
    std::uint64_t done = 0;     // have ended, well or not

    template <typename Visit, typename... Objects>
    static void for_each(Visit&& visit, Objects&... objects) {
      visit(CounterEntry{"messages_waiting"}, objects.waiting...);
      visit(CounterEntry{"messages_begun"}, objects.begun...);
      visit(CounterEntry{"messages_done"}, objects.done...);
    }
  };
  Counts counts(unsigned local) const {
    const AtomicCounts& counts = counts_[local];
    return {counts.waiting.load(std::memory_order_relaxed),
            counts.begun.load(std::memory_order_relaxed),
            counts.done.load(std::memory_order_relaxed)};
  }

  const MailRequest& at(std::uint32_t number) const { return *slots_[number].request; }
  bool any() const { return in_flight_.load(std::memory_order_acquire) != 0; }
  // Sends all of whose segments have been sent, and not all acknowledged: their receivers may have
  // ended already.
  std::uint32_t unanswered() const { return unanswered_.load(std::memory_order_acquire); }
  // Trainers that have left and that messages wait for, which end when it has been told why.
  std::size_t deserters() const { return deserters_.load(std::memory_order_acquire); }
  void set_deserters(std::size_t number) { deserters_.store(number, std::memory_order_release); }
  void add_unanswered() { unanswered_.fetch_add(1, std::memory_order_release); }
  void remove_unanswered() { unanswered_.fetch_sub(1, std::memory_order_release); }

  // function(number) may remove it.
  template <typename Function>
  void for_each(Function&& function) {
    for (std::uint32_t number = 0; number < slots_.size(); ++number) {
      if (slots_[number].request.has_value()) function(number);
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class State : std::uint8_t { begun, fresh, withdrawn };
  struct Slot {
    std::optional<MailRequest> request{};
    std::uint32_t next = kNone;      // of what is free, or in the one queue that it stands in
    std::uint32_t previous = kNone;  // in that queue
    State state = State::begun;
    bool met = false;  // the other trainer's part
  };
  using Queue = LinkedQueue<std::vector<Slot>>;

  std::optional<std::uint32_t> next(Queue& queue) {
    if (queue.empty()) return std::nullopt;
    const std::uint32_t number = queue.pop(slots_);
    slots_[number].state = State::begun;
    return number;
  }
  void leave_queue(std::uint32_t number) {
    if (slots_[number].state == State::begun) return;
    (is_fresh(number) ? fresh_ : withdrawn_).remove(slots_, number);
  }

  // One thread at a time writes them.
  struct AtomicCounts {
    std::atomic<std::uint64_t> waiting{0};
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> done{0};
  };
  static void add(std::atomic<std::uint64_t>& count, std::int64_t more) {
    count.store(count.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(more),
                std::memory_order_relaxed);
  }

  std::vector<Slot> slots_;
  std::vector<AtomicCounts> counts_;  // by trainer
  std::uint32_t free_ = kNone;
  Queue fresh_;
  Queue withdrawn_;
  std::atomic<std::uint64_t> in_flight_{0};
  std::atomic<std::uint32_t> unanswered_{0};
  std::atomic<std::size_t> deserters_{0};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_MAIL_TABLE_H_
