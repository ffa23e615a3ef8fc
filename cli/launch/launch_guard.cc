#include "cli/launch/launch_guard.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "control/base/system_error.h"

namespace gradcube::cli {
namespace {

// Shorter than PIPE_BUF, so it comes in one piece.
struct Note {
  pid_t group;
  bool lives;
};

void keep_only(int descriptor) {
  dup2(descriptor, STDIN_FILENO);
  if (close_range(STDIN_FILENO + 1, ~0U, 0) == 0) return;
  // Linux before 5.9 has no such call, and filters of containers may not let it pass.
  constexpr int kMost = 65536;
  for (int each = STDIN_FILENO + 1; each < kMost; ++each) close(each);
}

[[noreturn]] void watch(int pipe) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  keep_only(pipe);
  std::set<pid_t> groups;
  Note note{};
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, &note, sizeof note);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof note) break;
    if (note.lives) {
      groups.insert(note.group);
    } else {
      groups.erase(note.group);
    }
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

LaunchGuard::LaunchGuard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw control::system_error("cannot make a pipe");
  const control::Descriptor theirs(ends[0]);
  pipe_ = control::Descriptor(ends[1]);
  pid_ = fork();
  if (pid_ < 0) throw control::system_error("cannot start a process");
  if (pid_ == 0) watch(theirs.get());
}

LaunchGuard::~LaunchGuard() {
  pipe_.reset();
  waitpid(pid_, nullptr, 0);
}

void LaunchGuard::add(pid_t group) const {
  const Note note{.group = group, .lives = true};
  (void)!write(pipe_.get(), &note, sizeof note);
}

void LaunchGuard::remove(pid_t group) const {
  const Note note{.group = group, .lives = false};
  (void)!write(pipe_.get(), &note, sizeof note);
}

}  // namespace gradcube::cli
