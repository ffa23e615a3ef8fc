// The daemon's messages about failures, kept until the completions that they explain have come.
//
// The daemon sends a notice before the completions it is about, but the two travel separately: the
// notice on the socket, which is read only when something is wrong, the completion in the ring.
// One thread.
#ifndef GRADCUBE_TRAINER_SRC_NOTICES_H_
#define GRADCUBE_TRAINER_SRC_NOTICES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "trainer/shared_layout.h"

namespace gradcube::trainer {

inline bool covers(const shared::Notice& notice, std::uint64_t request) {
  const bool about_all = notice.first_request == 0 && notice.last_request == 0;
  return about_all || (notice.first_request <= request && request <= notice.last_request);
}

class Notices {
 public:
  // Keeps the newest kKept: there is never a reason for more than one per collective in flight.
  void add(const shared::Notice& notice) {
    if (kept_.size() == kKept) kept_.pop_front();
    kept_.push_back(notice);
  }

  // The first notice about `request`, since what came later is a consequence of it. Of those with
  // this code, if there is one. Null when there is none at all. Valid until the next call.
  const shared::Notice* about(std::uint64_t request, std::int32_t code) const {
    const shared::Notice* first = nullptr;
    for (const shared::Notice& notice : kept_) {
      if (!covers(notice, request)) continue;
      if (notice.code == code) return &notice;
      if (first == nullptr) first = &notice;
    }
    return first;
  }

  // Forgets what is about requests before `request` only.
  void forget_before(std::uint64_t request) {
    std::erase_if(kept_, [request](const shared::Notice& notice) {
      return notice.last_request != 0 && notice.last_request < request;
    });
  }

 private:
  static constexpr std::size_t kKept = shared::kRingEntries;

  std::deque<shared::Notice> kept_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_NOTICES_H_
