// The collectives and messages of a session whose end was not reported to the trainer yet: at most
// kRingEntries, so neither ring of the shared region can overflow.
//
// A place of the table is taken for a collective before it has a number, is listed under its number
// from its submission until its end is reported, and is free again when its buffer is the trainer's
// own again. Fixed tables: nothing is allocated. Guarded by the session's mutex; a place that is
// taken but not listed belongs to the thread that took it.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_REQUESTS_H_
#define GRADCUBE_TRAINER_SRC_SESSION_REQUESTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/shared_layout.h"
#include "trainer/src/base/deadline.h"
#include "trainer/src/session/collective.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class Hub;

// Of a push to a hub.
struct Push {
  Hub* hub = nullptr;
  std::size_t key = 0;           // the place in the trainer's list
  std::byte* weights = nullptr;  // where the trainer wants the new ones; null: nowhere
  std::uint64_t steps = 0;       // that the optimizer has taken of the key when it has ended
};

// What the trainer gets beside its buffer.
struct Wanted {
  std::size_t* received = nullptr;  // of a receive: the message's length
  std::optional<Push> push;
};

struct Request {
  std::uint64_t number = 0;          // 0: not listed
  std::uint64_t number_in_lane = 0;  // 1, 2, 3, ...: how the daemon knows it
  Collective collective;
  // The copy in the heap that the daemon works on; null when it works on the buffer itself.
  std::byte* staging = nullptr;
  bool withdrawn = false;  // the daemon was asked to withdraw it
  bool ended = false;
  bool abandoned = false;           // nobody asks for its end
  bool loses = false;               // what it brings: it was forgotten
  int code = GRADCUBE_OK;           // valid once ended
  std::uint64_t message_bytes = 0;  // shared::Completion's, once ended
  Wanted wanted;
  std::string message;                // why, when code is negative
  std::optional<std::string> report;  // the daemon's answer to the latest inquiry
  // How long the trainer has waited for the end, in all its calls since the last timeout.
  std::int64_t waited_ns = 0;
  // Instead, of a trainer that sleeps in an event loop: the time since the submission or the last
  // timeout.
  std::optional<Stopwatch> in_flight;

  // Where the daemon works; null when the buffer is empty.
  std::byte* shared_memory() const { return staging == nullptr ? collective.buffer : staging; }
};

class Requests {
 public:
  Requests() {
    for (std::uint16_t i = 0; i < kPlaces; ++i) free_[i] = i;
    first_.fill(kNone);
  }

  bool full() const { return free_places_ == 0; }

  // Of one that is taken: no other has it meanwhile.
  std::uint32_t place_of(const Request& request) const { return index_of(request); }

  // The table must not be full.
  Request& take_place() { return places_[free_[--free_places_]]; }
  void give_back_place(Request& request) {
    request = Request();
    free_[free_places_++] = index_of(request);
  }

  // `number` must not be 0 or listed.
  void list(Request& request, std::uint64_t number) {
    request.number = number;
    std::uint16_t& first = first_[number % kPlaces];
    next_[index_of(request)] = first;
    first = index_of(request);
  }

  void unlist(Request& request) {
    std::uint16_t* link = &first_[request.number % kPlaces];
    while (*link != index_of(request)) link = &next_[*link];
    *link = next_[*link];
    request.number = 0;
  }

  // Null when no request is listed under this number.
  Request* find(std::uint64_t number) {
    for (std::uint16_t i = first_[number % kPlaces]; i != kNone; i = next_[i]) {
      if (places_[i].number == number) return &places_[i];
    }
    return nullptr;
  }

  template <typename Call>
  void for_each_listed(const Call& call) {
    for (Request& request : places_) {
      if (request.number != 0) call(request);
    }
  }

 private:
  static constexpr std::uint16_t kPlaces = shared::kRingEntries;
  static constexpr std::uint16_t kNone = kPlaces;

  std::uint16_t index_of(const Request& request) const {
    return static_cast<std::uint16_t>(&request - places_.data());
  }

  std::array<Request, kPlaces> places_;
  std::array<std::uint16_t, kPlaces> free_;  // a stack
  std::size_t free_places_ = kPlaces;
  // Chains of places whose numbers have the same remainder: consecutive numbers never share one.
  std::array<std::uint16_t, kPlaces> first_;
  std::array<std::uint16_t, kPlaces> next_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_REQUESTS_H_
