// Ctrl-C without a signal handler: the signals are blocked, and loops ask whether one is pending.
//
// Make the guard before any thread is started, because threads inherit the mask. Its destructor
// restores the old mask, and a signal that is pending then ends the process, as the shell that
// started it expects. So clean up before the guard is destroyed.
#ifndef GRADCUBE_CLI_CLUSTER_INTERRUPT_H_
#define GRADCUBE_CLI_CLUSTER_INTERRUPT_H_

#include <signal.h>

namespace gradcube::cli {

// SIGINT, SIGTERM and SIGHUP, but for ignored ones: nohup and a shell's `&` have some ignored.
sigset_t signals_to_heed();

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether one of signals_to_heed() has come. Any thread.
  static bool interrupted();

  // The mask from before, for a child process.
  const sigset_t& old_mask() const { return old_mask_; }

 private:
  sigset_t old_mask_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_INTERRUPT_H_
