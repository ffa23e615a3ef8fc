#include "cli/cluster/interrupt.h"

#include <cstdio>
#include <initializer_list>

namespace gradcube::cli {

sigset_t signals_to_heed() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    const bool is_known = sigaction(signal, nullptr, &action) == 0;
    if (is_known && action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  return signals;
}

InterruptGuard::InterruptGuard() {
  const sigset_t ours = signals_to_heed();
  pthread_sigmask(SIG_BLOCK, &ours, &old_mask_);
}

InterruptGuard::~InterruptGuard() {
  std::fflush(stdout);
  std::fflush(stderr);
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

bool InterruptGuard::interrupted() {
  sigset_t pending;
  if (sigpending(&pending) != 0) return false;
  const sigset_t ours = signals_to_heed();
  sigset_t heeded;
  return sigandset(&heeded, &pending, &ours) == 0 && sigisemptyset(&heeded) == 0;
}

}  // namespace gradcube::cli
