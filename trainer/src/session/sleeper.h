// How a trainer waits for its daemon: a very short spin, then sleep in poll().
//
// Spinning helps only when the daemon runs on another core and is about to finish. The spin's
// length doubles when the completion arrives during the spin and halves when it does not, so
// trainers that share few cores hardly spin.
//
// One thread at a time spins and sleeps: the leader (waiters.h). wake() and silence_doorbell() may
// be called by any thread meanwhile.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_SLEEPER_H_
#define GRADCUBE_TRAINER_SRC_SESSION_SLEEPER_H_

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trainer/src/base/deadline.h"
#include "trainer/src/base/descriptor.h"
#include "trainer/src/base/failure.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class Sleeper {
 public:
  // `socket` stays the caller's. Throws Failure when the system has no descriptor.
  explicit Sleeper(int socket) : socket_(socket), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_.valid()) {
      throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot make an eventfd", errno));
    }
  }

  // Once, before the first sleep. It stays the caller's.
  void set_doorbell(int doorbell) { doorbell_ = doorbell; }

  // True as soon as `arrived()` is.
  template <typename Arrived>
  bool spin(const Arrived& arrived) {
    for (int turn = 0; turn < turns_; ++turn) {
      if (arrived()) {
        turns_ = std::min(turns_ * 2, kMostTurns);
        return true;
      }
      pause();
    }
    turns_ = std::max(turns_ / 2, kFewestTurns);
    return false;
  }

  struct Woken {
    bool socket = false;           // there is something to read on the socket, or it closed
    bool doorbell_closed = false;  // the daemon's end of the doorbell is gone
    bool by_signal = false;
  };

  // Sleeps until the doorbell rings, the socket has something, another thread calls wake(), a
  // signal is caught, or the deadline has passed.
  Woken sleep(const Deadline& deadline) {
    pollfd waiting[] = {{doorbell_, POLLIN, 0}, {socket_, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    Woken woken;
    const int ready = ::poll(waiting, 3, deadline.poll_timeout());
    if (ready < 0) woken.by_signal = errno == EINTR;
    if (ready <= 0) return woken;
    if (waiting[0].revents != 0) woken.doorbell_closed = !silence_doorbell();
    woken.socket = waiting[1].revents != 0;
    if (waiting[2].revents != 0) {
      std::uint64_t calls = 0;
      [[maybe_unused]] const ssize_t taken = ::read(wake_.get(), &calls, sizeof(calls));
    }
    return woken;
  }

  // Closes the descriptor of its own. For forked copies, which never sleep.
  void close() { wake_.reset(); }

  // Ends the sleep that goes on, or else the next one.
  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t given = ::write(wake_.get(), &one, sizeof(one));
  }

  // Takes all rings that have come. False when the other end is closed.
  bool silence_doorbell() {
    char rings[64];
    for (;;) {
      const ssize_t taken = ::recv(doorbell_, rings, sizeof(rings), MSG_DONTWAIT);
      if (taken == 0) return false;
      if (taken < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
  }

 private:
  static constexpr int kFewestTurns = 4;
  static constexpr int kMostTurns = 1024;  // some 40 microseconds

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  int doorbell_ = -1;
  int socket_;
  Descriptor wake_;
  int turns_ = kFewestTurns;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_SLEEPER_H_
