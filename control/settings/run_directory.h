// The run directory: the sockets, lock and log of a host's cluster.
//
//   gradcubed.lock       flock()ed exclusively by a living daemon; holds its pid. Never removed, so
//                        that two daemons can never hold locks on two files of that name
//   starting.lock        flock()ed by a tool that starts a daemon or removes what one has left
//                        (cli/up/own_daemon.h). Never removed either
//   gradcubed.log        the daemon's standard output and error
//   gradcubed.log.old    those of the daemon before it
//   control.sock         SOCK_STREAM: one line of JSON for a request, one for its answer
//   dpdk_telemetry.v2    SOCK_SEQPACKET: what dpdk-telemetry.py asks (telemetry_server.h)
//   server-2-1.sock      where the trainers of server [2,1] open their sessions
//   2-1/                 of server [2,1], where each server has a daemon of its own: its lock, log
//                        and sockets. It stays when they end, for its logs
//   switches-0/          the same of a daemon that has emulated switches alone; beside its
//                        control.sock it has memif.sock, to which the servers' daemons connect
//   hosts.json           of a cluster on several hosts, how they are reached
//                        (cli/cluster/cluster_hosts.h)
//
// The directory belongs to one user, and nobody else may write to it: anyone who could replace a
// socket in it could read the gradients. Others may look at it where the daemon serves others. The
// tool and the daemon both use it. Any thread. Errors are SetupError.
#ifndef GRADCUBE_CONTROL_SETTINGS_RUN_DIRECTORY_H_
#define GRADCUBE_CONTROL_SETTINGS_RUN_DIRECTORY_H_

#include <filesystem>
#include <optional>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "control/base/descriptor.h"

namespace gradcube::control {

class DaemonLock;

// Who holds the daemon's lock. pid is 0 when the holder has not written it yet.
struct LivingDaemon {
  pid_t pid;
};

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path path);

  // $GRADCUBE_RUN, else $XDG_RUNTIME_DIR/gradcube, else /tmp/gradcube-$UID. Looks at nothing on the
  // disk.
  static RunDirectory from_environment();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path lock_file() const { return path_ / "gradcubed.lock"; }
  std::filesystem::path start_lock_file() const { return path_ / "starting.lock"; }
  std::filesystem::path log_file() const { return path_ / "gradcubed.log"; }
  std::filesystem::path old_log_file() const { return path_ / "gradcubed.log.old"; }
  // Of a key that a cluster was started with and nobody has named.
  std::filesystem::path key_file() const { return path_ / "cluster.key"; }
  std::filesystem::path control_socket() const { return path_ / "control.sock"; }
  std::filesystem::path telemetry_socket() const { return path_ / "dpdk_telemetry.v2"; }

  // `suffix` is the server's digits, most significant first, joined by '-': "2-1" is
  // server-2-1.sock.
  std::filesystem::path server_socket(std::string_view suffix) const;

  // That of the server's own daemon, where each server has one; `suffix` as above.
  RunDirectory of_server(std::string_view suffix) const;

  // That of a daemon of switches, by its number; and the socket there at which it listens.
  RunDirectory of_switches(unsigned part) const;
  std::filesystem::path memif_socket() const;

  // Throws SetupError unless its path is text that can be shown, and short enough for Unix sockets
  // in it. Looks at nothing on the disk.
  void check_path() const;

  // Makes the directory (0700) where it is missing, then check()s it.
  void create() const;

  // Throws SetupError unless its path is right and this is a directory, not a symbolic link, ours,
  // and writable by nobody else.
  void check() const;

  // The same for who only asks the daemon there: the directory may also belong to root, or to the
  // user whom $GRADCUBE_DAEMON_UID names, as that of a daemon which serves several users does.
  void check_as_client() const;
  bool is_own() const;

  // Lets others find the sockets in it (0755): the daemon knows who uses them. The rest in it is
  // readable by its own user alone. Returns the first folder on the way that is closed to others,
  // if there is one. Throws SetupError.
  std::optional<std::filesystem::path> admit_others() const;

  // Throws SetupError where this user may not enter it, because of it or of a folder on the way:
  // then all in it seems not to be there.
  void require_open() const;

  bool exists() const;

  // The daemon that holds the lock, if there is one. A missing directory has no daemon.
  std::optional<LivingDaemon> living_daemon() const;

  // Of those in it that of_server() and of_switches() name, the ones that have a living daemon:
  // the children of the daemon here, and those that were started by hand.
  std::vector<RunDirectory> living_parts() const;

  // Sockets that daemons left behind, those of servers included, but of none that lives in a
  // directory in this one. Meaningful only while no daemon runs here.
  std::vector<std::filesystem::path> stale_sockets() const;

  // Removes them. Holding the lock proves that no daemon runs here.
  void remove_stale_sockets(const DaemonLock& lock) const;

  // Begins a daemon's log, which is empty; what an earlier one wrote is kept aside.
  Descriptor begin_log() const;

  // Makes all of its files look new, for programs that remove old ones from /tmp.
  void touch_files() const noexcept;

 private:
  void check_for(bool is_client) const;

  std::filesystem::path path_;
};

// The right to be the daemon of a run directory. It is held as long as this object exists, and the
// kernel takes it back when the process ends. Programs that the process executes do not inherit it.
class DaemonLock {
 public:
  // Empty when a daemon holds it already. Tries for a fraction of a second, because a tool that
  // asks whether a daemon runs holds the lock for a moment.
  static std::optional<DaemonLock> acquire(const RunDirectory& directory);

  // Writes this process's pid into the file, for the others' messages.
  void write_pid() const;

  // Whether the lock file of `directory` is still the file that is locked here. False once it, or
  // the directory, was removed, moved or replaced: then another daemon can take the directory.
  bool is_in(const RunDirectory& directory) const;

 private:
  explicit DaemonLock(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_RUN_DIRECTORY_H_
