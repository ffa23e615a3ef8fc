// The descriptor that gradcube_event_fd() gives out: an epoll descriptor over the doorbell, the
// session's socket, and an eventfd that tells of ends that were not reported yet.
//
// Level-triggered. The doorbell rings when the daemon has published completions, and whoever
// silences it takes these; the eventfd then keeps the descriptor readable until all of them were
// reported, whichever thread took them. Guarded by the session's mutex.
#ifndef GRADCUBE_TRAINER_SRC_EVENT_DESCRIPTOR_H_
#define GRADCUBE_TRAINER_SRC_EVENT_DESCRIPTOR_H_

#include <cerrno>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "trainer/src/descriptor.h"
#include "trainer/src/failure.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class EventDescriptor {
 public:
  // `doorbell` and `socket` stay the caller's. Throws Failure when the system has no descriptor.
  EventDescriptor(int doorbell, int socket)
      : unreported_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        all_(::epoll_create1(EPOLL_CLOEXEC)) {
    check(unreported_.valid() && all_.valid());
    for (const int part : {unreported_.get(), doorbell, socket}) {
      epoll_event readable{};
      readable.events = EPOLLIN;
      check(::epoll_ctl(all_.get(), EPOLL_CTL_ADD, part, &readable) == 0);
    }
  }

  int fd() const { return all_.get(); }

  // Whether there are ends that were not reported yet.
  void set_unreported(bool some) {
    if (some == some_) return;
    some_ = some;
    std::uint64_t count = 1;
    [[maybe_unused]] const ssize_t bytes = some ? ::write(unreported_.get(), &count, sizeof(count))
                                                : ::read(unreported_.get(), &count, sizeof(count));
  }

 private:
  static void check(bool done) {
    if (done) return;
    throw Failure(GRADCUBE_ESYSTEM,
                  with_system_error("cannot make the session's event descriptor", errno));
  }

  Descriptor unreported_;
  Descriptor all_;
  bool some_ = false;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_EVENT_DESCRIPTOR_H_
