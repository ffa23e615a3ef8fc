#include "cli/up/own_daemon.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/comes_true.h"
#include "cli/cluster/control_client.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/running_cluster.h"
#include "control/base/errors.h"
#include "control/base/system_error.h"

namespace gradcube::cli {
namespace {

using control::DaemonLock;
using control::RunDirectory;
using control::SetupError;

constexpr auto kDyingPatience = std::chrono::milliseconds(500);
// One that has seen its end ends its daemon first, which takes up to 10 s.
constexpr auto kOtherStartPatience = std::chrono::seconds(15);
constexpr auto kUpPause = std::chrono::milliseconds(10);
constexpr auto kEndPatience = std::chrono::seconds(10);
constexpr auto kDownPause = std::chrono::milliseconds(20);

// What has ended of the cluster that runs; nothing if it cannot be asked.
std::string ended_part(const RunDirectory& directory) {
  try {
    const RunningCluster cluster = running_cluster(directory);
    return ended_daemons(cluster, control::Placement::all(cluster.topology));
  } catch (const std::exception&) {
    return "";
  }
}

[[noreturn]] void throw_runs_already(const RunDirectory& directory) {
  const auto daemon = directory.living_daemon();
  if (!daemon && !directory.living_parts().empty()) throw SetupError(no_cluster_message(directory));
  const std::string ended = ended_part(directory);
  // It may be read at another host.
  const std::string what = is_for_this_host_alone()
                               ? "typed on that host, `gradcube status` shows it, and `gradcube "
                                 "down`, or `GRADCUBE_THIS_HOST=1 gradcube down`, ends it"
                               : "`gradcube status` shows it, `gradcube down` ends it";
  throw SetupError(
      fmt::format("a cluster runs already{} in {}: {}",
                  daemon && daemon->pid > 0 ? fmt::format(" (pid {})", daemon->pid) : "",
                  directory.path().string(), ended.empty() ? what : ended));
}

// A daemon that was just killed holds its lock until the kernel has taken its memory back.
bool is_free_soon(const RunDirectory& directory) {
  return comes_true(kDyingPatience, kUpPause,
                    [&] { return !directory.living_daemon() && directory.living_parts().empty(); });
}

// The advice for a daemon that does not end by itself.
std::string kill_message(pid_t pid) {
  return pid > 0
             ? fmt::format("end it with `kill {0}`, or `kill -9 {0}` if that does not help", pid)
             : "its pid is not known: `pgrep gradcubed` lists the daemons";
}

// Root may end another user's daemon, whose directory is none of root's.
bool is_of_another_user(const RunDirectory& directory) {
  return directory.exists() && !directory.is_own();
}

void remove_key(const RunDirectory& directory) {
  std::error_code ignored;
  std::filesystem::remove(directory.key_file(), ignored);
}

void remove_leftovers(const RunDirectory& directory, const StartLock* held) {
  if (!directory.exists()) return;
  directory.check();
  const auto own = held == nullptr ? StartLock::try_to_take(directory) : std::nullopt;
  if (held == nullptr && !own) return;  // they are of the one that starts there
  const auto lock = DaemonLock::acquire(directory);
  if (!lock) return;
  directory.remove_stale_sockets(*lock);
  remove_key(directory);
  forget_cluster_hosts(directory);
}

// Whether this daemon still holds the run directory. Another `up` may have begun a new one there.
bool lives(const RunDirectory& directory, pid_t pid) {
  const auto daemon = directory.living_daemon();
  return daemon && (daemon->pid == pid || daemon->pid == 0);
}

void ask_to_end(const RunDirectory& directory, pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + kEndPatience;
  const auto left = [deadline] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline -
                                                                 std::chrono::steady_clock::now());
  };
  for (;;) {
    try {
      ask_daemon(directory, {{"command", "down"}}, std::max(left(), kDownPause));
      return;
    } catch (const SetupError& error) {
      // One that is starting does not listen yet. One that has ended in the meantime, or is about
      // to, does what it was asked.
      if (!lives(directory, pid)) return;
      if (left().count() <= 0) {
        throw SetupError(fmt::format("{}; {}", error.what(), kill_message(pid)));
      }
    }
    std::this_thread::sleep_for(kDownPause);
  }
}

// Its pid; nothing where none ran.
std::optional<pid_t> end_one(const RunDirectory& directory) {
  const auto daemon = directory.living_daemon();
  if (!daemon) return std::nullopt;
  ask_to_end(directory, daemon->pid);
  if (!comes_true(kEndPatience, kDownPause, [&] { return !lives(directory, daemon->pid); })) {
    throw SetupError(fmt::format("the daemon (pid {}) has not ended after {} s; {}", daemon->pid,
                                 kEndPatience.count(), kill_message(daemon->pid)));
  }
  return daemon->pid;
}

// For refuse_shared() on other hosts, whose lack of it is no harm.
void write_owner(const control::Descriptor& lock, const StartLock::Owner& owner) {
  const std::string words = fmt::format("{} {}\n", owner.cluster, owner.host);
  if (ftruncate(lock.get(), 0) != 0) return;
  if (pwrite(lock.get(), words.data(), words.size(), 0) < 0) return;
  fdatasync(lock.get());  // hosts that share it by NFS see it then
}

void refuse_shared(const RunDirectory& directory, const StartLock::Owner& owner) {
  std::ifstream file(directory.start_lock_file());
  StartLock::Owner holder;
  if (!(file >> holder.cluster >> holder.host)) return;
  if (holder.cluster != owner.cluster || holder.host == owner.host) return;
  throw SetupError(fmt::format(
      "hosts {} and {} share the directory {}: set GRADCUBE_RUN to one that is local to "
      "each host, such as /tmp/gradcube-{}, or leave it unset",
      holder.host, owner.host, directory.path().string(), geteuid()));
}

}  // namespace

std::optional<StartLock> StartLock::try_to_take(const RunDirectory& directory) {
  const std::string name = directory.start_lock_file().string();
  control::Descriptor file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) throw control::system_error("cannot open {}", name);
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return StartLock(std::move(file));
  if (errno == EWOULDBLOCK || errno == EINTR) return std::nullopt;
  throw control::system_error("cannot lock {}", name);
}

StartLock::StartLock(const RunDirectory& directory, const Owner& owner,
                     const std::function<void()>& waiting) {
  directory.create();
  std::optional<StartLock> taken;
  const bool is_taken = comes_true(kOtherStartPatience, kUpPause, [&] {
    taken = try_to_take(directory);
    if (taken) return true;
    refuse_shared(directory, owner);
    if (InterruptGuard::interrupted()) throw SetupError("interrupted");
    if (waiting) waiting();
    return false;
  });
  if (!is_taken) {
    throw SetupError(
        fmt::format("another `gradcube up` is starting a cluster in {}: wait until it has ended, "
                    "or set GRADCUBE_RUN to another directory",
                    directory.path().string()));
  }
  file_ = std::move(taken->file_);
  write_owner(file_, owner);
}

std::size_t prepare(const RunDirectory& directory, const StartLock&) {
  if (!is_free_soon(directory)) throw_runs_already(directory);
  const auto lock = DaemonLock::acquire(directory);
  if (!lock) throw_runs_already(directory);
  remove_key(directory);
  const std::size_t stale = directory.stale_sockets().size();
  directory.remove_stale_sockets(*lock);
  return stale;
}

std::optional<pid_t> end_daemon(const RunDirectory& directory, const StartLock* held) {
  directory.require_open();
  const auto daemon = end_one(directory);
  // A server's daemon that was started by hand is no child of that one, and has outlived it.
  std::optional<pid_t> part_ended;
  std::string why;
  for (const RunDirectory& part : directory.living_parts()) {
    try {
      part_ended = end_one(part);
    } catch (const SetupError& error) {
      why = error.what();
    }
  }
  if (!why.empty()) throw SetupError(why);
  if (!daemon || !is_of_another_user(directory)) remove_leftovers(directory, held);
  return daemon ? daemon : part_ended;
}

}  // namespace gradcube::cli
