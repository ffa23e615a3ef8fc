#include "dataplane/sockets/stop_signals.h"

#include <cerrno>
#include <signal.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

namespace {

int watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

StopSignals::StopSignals(ControlLoop& loop, std::function<void()> on_signal)
    : loop_(loop), signals_(watched_signals()) {
  if (signals_.get() < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch signals");
  }
  loop_.add(signals_.get(), [this, on_signal = std::move(on_signal)] {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return;
    log::info("ending on signal {}", info.ssi_signo);
    on_signal();
  });
}

StopSignals::~StopSignals() { loop_.remove(signals_.get()); }

}  // namespace gradcube::dataplane
