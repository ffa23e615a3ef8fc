// The signals that concern whoever waits for processes: the end of a child, and SIGINT, SIGTERM and
// SIGHUP, unless they were ignored at the start (nohup). They are blocked and read from a
// descriptor. SIGPIPE is ignored.
//
// The destructor takes all of it back: what is pending then ends the process, as the shell that
// started it expects. Make it before any thread. Errors are control::SetupError.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_SIGNALS_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_SIGNALS_H_

#include <signal.h>

#include "control/base/descriptor.h"

namespace gradcube::cli {

class LaunchSignals {
 public:
  // for_children: the mask that they are to have, if it is not the one of now.
  explicit LaunchSignals(const sigset_t* for_children = nullptr);
  ~LaunchSignals();
  LaunchSignals(const LaunchSignals&) = delete;
  LaunchSignals& operator=(const LaunchSignals&) = delete;

  // Readable when a signal has come.
  int descriptor() const { return descriptor_.get(); }
  // The next signal that has come; 0: none.
  int next() const;

  // In a child, before it executes a program: as all was before.
  void restore_in_child() const { restore(mask_of_children_); }

 private:
  void restore(const sigset_t& mask) const;

  sigset_t old_mask_;
  sigset_t mask_of_children_;
  sighandler_t old_pipe_;
  control::Descriptor descriptor_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_SIGNALS_H_
