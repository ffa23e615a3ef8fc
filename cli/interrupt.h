// Ctrl-C without a handler: the signals are blocked, and asked after where a loop comes by.
//
// Make the guard before any thread is started (threads inherit the mask). When it is destroyed the
// old mask returns, and with it a signal that came meanwhile: the process then ends by that signal,
// as its parent shell expects, with everything that the guard's owner had to clean up already
// clean.
#ifndef GRADCUBE_CLI_INTERRUPT_H_
#define GRADCUBE_CLI_INTERRUPT_H_

#include <signal.h>

namespace gradcube::cli {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether SIGINT, SIGTERM or SIGHUP has come. Any thread.
  static bool interrupted();

  // The mask from before, for a child process.
  const sigset_t& old_mask() const { return old_mask_; }

 private:
  sigset_t old_mask_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_INTERRUPT_H_
