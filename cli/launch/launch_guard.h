// A process that ends what another one has started, if that one is killed in a way that it cannot
// answer (SIGKILL).
//
// The groups of processes are told to the guard through a pipe. When the pipe closes while some are
// left, the guard sends them SIGKILL. It holds nothing of its parent but the pipe, is in a session
// of its own and heeds no signal of a terminal.
//
// Threads: the one that made it. Errors are control::SetupError. SIGPIPE has to be ignored.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_GUARD_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_GUARD_H_

#include <sys/types.h>

#include "control/base/descriptor.h"

namespace gradcube::cli {

class LaunchGuard {
 public:
  // Forks: make it before other descriptors that must close with this process.
  LaunchGuard();
  ~LaunchGuard();  // returns once the guard has ended
  LaunchGuard(const LaunchGuard&) = delete;
  LaunchGuard& operator=(const LaunchGuard&) = delete;

  // May be called between fork() and execve(), so that no group is there before the guard knows it.
  void add(pid_t group) const;
  // Nobody is left of it, so its number may get another meaning.
  void remove(pid_t group) const;

 private:
  control::Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_GUARD_H_
