#include "cli/cluster/interrupt.h"

#include <cstdio>
#include <initializer_list>

namespace gradcube::cli {

InterruptGuard::InterruptGuard() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ours, signal);
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
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

}  // namespace gradcube::cli
