// A child of this process, which does not outlive it.
//
// start() forks. What the child runs until it executes a program may use only what POSIX allows
// there beside other threads: no memory is allocated and nothing is locked. The kernel kills the
// child (SIGKILL) when the thread that started it ends, however it ends. The destructor does so,
// too, and waits. A program with file capabilities (setcap), that the child executes, has to see to
// it anew by die_with(): the kernel forgets it then.
//
// Threads: the one that started it. Errors are control::SetupError. Needs Linux 5.3 (pidfd_open).
#ifndef GRADCUBE_DATAPLANE_BED_CHILD_PROCESS_H_
#define GRADCUBE_DATAPLANE_BED_CHILD_PROCESS_H_

#include <chrono>
#include <functional>
#include <string>
#include <sys/types.h>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {

// From now on the kernel kills this process (SIGKILL) when the thread that started it ends. False
// if it cannot, or if the parent is not this one: it has ended already.
bool die_with(pid_t parent);

class ChildProcess {
 public:
  // run: never returns. It begins with no signal blocked.
  static ChildProcess start(const std::function<void()>& run);

  ~ChildProcess();
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends.
  int descriptor() const { return descriptor_.get(); }

  // Whether it ends before the deadline, or has ended.
  bool ends_by(std::chrono::steady_clock::time_point deadline);
  // "signal 9 (Killed)", "exit code 1"; of a process that has ended.
  std::string end_text() const;
  bool succeeded() const { return ended_ && status_ == 0; }
  void send(int signal) const;  // unless it has ended

 private:
  explicit ChildProcess(pid_t pid);

  pid_t pid_;
  control::Descriptor descriptor_;
  bool ended_ = false;
  int status_ = -1;  // as of waitpid(), which may fail
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_CHILD_PROCESS_H_
