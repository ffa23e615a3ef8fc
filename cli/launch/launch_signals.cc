#include "cli/launch/launch_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cluster/interrupt.h"
#include "control/base/system_error.h"

namespace gradcube::cli {

LaunchSignals::LaunchSignals(const sigset_t* for_children) {
  sigset_t ours = signals_to_heed();
  sigaddset(&ours, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &ours, &old_mask_);
  mask_of_children_ = for_children != nullptr ? *for_children : old_mask_;
  old_pipe_ = signal(SIGPIPE, SIG_IGN);
  descriptor_ = control::Descriptor(signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
  if (descriptor_.get() >= 0) return;
  const auto refusal = control::system_error("cannot receive signals");
  restore(old_mask_);
  throw refusal;
}

LaunchSignals::~LaunchSignals() { restore(old_mask_); }

int LaunchSignals::next() const {
  signalfd_siginfo info{};
  const ssize_t got = read(descriptor_.get(), &info, sizeof info);
  return got == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void LaunchSignals::restore(const sigset_t& mask) const {
  signal(SIGPIPE, old_pipe_);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace gradcube::cli
