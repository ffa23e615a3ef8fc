// What makes a daemon end: SIGTERM and SIGINT, `down` on its control socket, and the loss of its
// run directory: no client could reach it any more, and the next `up` would start a second daemon
// beside it. It says so in the log.
//
// Threads: the loop's. All threads of the process must have blocked the two signals. The
// constructor throws std::system_error.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_STOP_CAUSES_H_
#define GRADCUBE_DATAPLANE_SOCKETS_STOP_CAUSES_H_

#include <chrono>
#include <optional>
#include <string>

#include "control/base/descriptor.h"
#include "control/settings/run_directory_watch.h"
#include "dataplane/sockets/control_loop.h"
#include "dataplane/sockets/control_server.h"

namespace gradcube::dataplane {

class StopCauses {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // All that is named outlives this object, except that the server may go first.
  StopCauses(ControlLoop& loop, ControlServer& server, const control::RunDirectory& directory,
             const control::DaemonLock& lock);
  ~StopCauses();
  StopCauses(const StopCauses&) = delete;
  StopCauses& operator=(const StopCauses&) = delete;

  bool any() const { return any_; }
  // To be called in each tick. If the daemon is to end from now on because its run directory is
  // lost: a sentence about that.
  std::optional<std::string> look(SteadyClock::time_point now);

 private:
  ControlLoop& loop_;
  control::RunDirectoryWatch directory_;
  control::Descriptor signals_;
  bool any_ = false;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_STOP_CAUSES_H_
