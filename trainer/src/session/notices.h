// The daemon's messages about failures, kept for the completions that name them.
//
// The daemon sends a notice before the completions it is about, but the two travel separately: the
// notice on the socket, which is read only when something is wrong, the completion in the ring.
// Guarded by the session's mutex.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_NOTICES_H_
#define GRADCUBE_TRAINER_SRC_SESSION_NOTICES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "trainer/shared_layout.h"

namespace gradcube::trainer {

class Notices {
 public:
  // Keeps the newest kKept, more than a socket has room for where net.core.wmem_default is Linux's
  // own: the trainer may find as many there at once, before it takes the completions that they
  // explain. Where somebody has raised it, the oldest of very many failures have no text.
  void add(const shared::Notice& notice) {
    if (kept_.size() == kKept) kept_.pop_front();
    kept_.push_back({notice.number, notice.text});
  }

  // Null when there is none of this number, or it came too long ago. Valid until the next add().
  const std::string* text_of(std::uint32_t number) const {
    for (auto notice = kept_.rbegin(); number != 0 && notice != kept_.rend(); ++notice) {
      if (notice->number == number) return &notice->text;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kKept = 128;

  struct Kept {
    std::uint32_t number;
    std::string text;
  };
  std::deque<Kept> kept_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_NOTICES_H_
