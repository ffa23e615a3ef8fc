// The daemon of a run directory on this host: what has to be so before it starts, and its end.
//
// Errors are control::SetupError. One thread.
#ifndef GRADCUBE_CLI_UP_OWN_DAEMON_H_
#define GRADCUBE_CLI_UP_OWN_DAEMON_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

#include "control/base/descriptor.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// One at a time starts a daemon in a directory: the process that holds this, from before prepare()
// until the daemon stays or is gone. What lies there until then is that process's, such as a key
// that the daemon has yet to read.
class StartLock {
 public:
  // Whose start it is: that of an `up` on several hosts, by its ClusterHosts::cluster, on this one
  // of them. Of an `up` on one host both are empty.
  struct Owner {
    std::string cluster;
    std::string host;
  };

  // Makes the directory. Waits for one that holds it, who may be about to end, and calls `waiting`
  // meanwhile. Throws where it keeps it, and after an interrupt (interrupt.h). Throws at once where
  // another host of the same cluster holds it: they have the directory in common, as in a home.
  explicit StartLock(const control::RunDirectory& directory, const Owner& owner = {},
                     const std::function<void()>& waiting = {});

  // Nothing where another holds it. The directory exists.
  static std::optional<StartLock> try_to_take(const control::RunDirectory& directory);

 private:
  explicit StartLock(control::Descriptor file) : file_(std::move(file)) {}

  // flock()ed, and inherited by no program. It has the owner's words.
  control::Descriptor file_;
};

// Makes sure that no daemon runs in the directory, nor one of a server or of switches in one in it,
// and that no sockets of an earlier one are left. Returns how many sockets one had left that did
// not end in good order.
std::size_t prepare(const control::RunDirectory& directory, const StartLock& lock);

// Ends the message of `down` where none runs that is this cluster's.
inline constexpr std::string_view kNothingToEnd = "there is nothing to end";

// Ends the daemon and those in directories in this one, waits until they are gone, and removes what
// they have left, unless another than `held`, if there is one, holds the StartLock there. Returns
// its pid (0: not known), or that of one of them; nothing where none ran.
std::optional<pid_t> end_daemon(const control::RunDirectory& directory,
                                const StartLock* held = nullptr);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_UP_OWN_DAEMON_H_
