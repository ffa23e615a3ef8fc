// The descriptor that gradcube_event_fd() gives out: an epoll descriptor over the doorbell, the
// session's socket, and an eventfd that tells of ends that were not reported yet.
//
// Level-triggered. The doorbell rings when the daemon has published completions, and whoever
// silences it takes these; the eventfd then keeps the descriptor readable until all of them were
// reported, whichever thread took them. It is set when the mutex is about to be released, so that
// what one call both takes and reports needs neither a write nor a read.
//
// A completion may be taken before its ring comes. So the doorbell counts only while a collective
// is in flight: the late ring of the last one wakes nobody, who would then have no request to test.
// The next one silences it, is published, and then lets it count again: epoll looks at it in that
// moment, so a ring that came since is heard. Guarded by the session's mutex.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_EVENT_DESCRIPTOR_H_
#define GRADCUBE_TRAINER_SRC_SESSION_EVENT_DESCRIPTOR_H_

#include <cerrno>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "trainer/src/base/descriptor.h"
#include "trainer/src/base/failure.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class EventDescriptor {
 public:
  // `doorbell` and `socket` stay the caller's. Throws Failure when the system has no descriptor.
  EventDescriptor(int doorbell, int socket)
      : doorbell_(doorbell),
        unreported_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        all_(::epoll_create1(EPOLL_CLOEXEC)) {
    check(unreported_.valid() && all_.valid());
    check(control(EPOLL_CTL_ADD, unreported_.get(), EPOLLIN));
    check(control(EPOLL_CTL_ADD, socket, EPOLLIN));
    check(control(EPOLL_CTL_ADD, doorbell_, 0));
  }

  int fd() const { return all_.get(); }

  // Whether there are ends that were not reported yet.
  void set_unreported(bool some) {
    if (some == some_unreported_) return;
    some_unreported_ = some;
    std::uint64_t count = 1;
    [[maybe_unused]] const ssize_t bytes = some ? ::write(unreported_.get(), &count, sizeof(count))
                                                : ::read(unreported_.get(), &count, sizeof(count));
  }

  // Whether the doorbell counts.
  void set_in_flight(bool some) {
    if (some == in_flight_) return;
    in_flight_ = some;
    control(EPOLL_CTL_MOD, doorbell_, some ? std::uint32_t{EPOLLIN} : 0);
  }

 private:
  bool control(int what, int part, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    return ::epoll_ctl(all_.get(), what, part, &event) == 0;
  }

  static void check(bool done) {
    if (done) return;
    throw Failure(GRADCUBE_ESYSTEM,
                  with_system_error("cannot make the session's event descriptor", errno));
  }

  int doorbell_;
  Descriptor unreported_;
  Descriptor all_;
  bool some_unreported_ = false;
  bool in_flight_ = false;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_EVENT_DESCRIPTOR_H_
