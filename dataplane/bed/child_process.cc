#include "dataplane/bed/child_process.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/system_error.h"

namespace gradcube::dataplane {

using SteadyClock = std::chrono::steady_clock;

namespace {

// glibc 2.36 has this function, but declares it for C alone.
int open_process(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
}

}  // namespace

// The death of a parent that died before prctl() was called goes unnoticed else.
bool die_with(pid_t parent) { return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent; }

ChildProcess ChildProcess::start(const std::function<void()>& run) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw control::system_error("cannot start a process");
  if (pid == 0) {
    if (!die_with(parent)) _exit(1);
    reset_signals();
    run();
    _exit(127);
  }
  return ChildProcess(pid);
}

ChildProcess::ChildProcess(pid_t pid) : pid_(pid), descriptor_(open_process(pid)) {
  if (descriptor_.get() >= 0) return;
  const auto refusal = control::system_error("cannot watch a process");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  throw refusal;
}

ChildProcess::~ChildProcess() {
  if (descriptor_.get() < 0 || ended_) return;  // moved from, or gone
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool ChildProcess::ends_by(SteadyClock::time_point deadline) {
  while (!ended_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    pollfd event{descriptor_.get(), POLLIN, 0};
    const int ready = poll(&event, 1, static_cast<int>(std::clamp<long>(left, 0, 60'000)));
    if (ready > 0) ended_ = waitpid(pid_, &status_, WNOHANG) != 0;
    if (ready == 0 && left <= 0) return false;
  }
  return true;
}

std::string ChildProcess::end_text() const {
  return WIFSIGNALED(status_)
             ? fmt::format("signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)))
             : fmt::format("exit code {}", WEXITSTATUS(status_));
}

void ChildProcess::send(int signal) const {
  if (!ended_) kill(pid_, signal);
}

}  // namespace gradcube::dataplane
