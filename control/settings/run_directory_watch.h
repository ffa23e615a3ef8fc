// Tells a running daemon that its run directory is not its own any more: another daemon may have
// taken it, and nobody finds this one's sockets. Also keeps its files' times new.
//
// One thread. Does not throw.
#ifndef GRADCUBE_CONTROL_SETTINGS_RUN_DIRECTORY_WATCH_H_
#define GRADCUBE_CONTROL_SETTINGS_RUN_DIRECTORY_WATCH_H_

#include <chrono>
#include <optional>
#include <string>

#include "control/settings/run_directory.h"

namespace gradcube::control {

class RunDirectoryWatch {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // Both outlive it.
  RunDirectoryWatch(const RunDirectory& directory, const DaemonLock& lock)
      : directory_(directory), lock_(lock) {}

  // To be called as often as one likes: the disk is looked at a few times in a second. A sentence
  // about what has happened, once; nothing while all is well.
  std::optional<std::string> look(SteadyClock::time_point now);

 private:
  const RunDirectory& directory_;
  const DaemonLock& lock_;
  bool lost_ = false;
  SteadyClock::time_point next_look_;
  SteadyClock::time_point next_touch_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_RUN_DIRECTORY_WATCH_H_
