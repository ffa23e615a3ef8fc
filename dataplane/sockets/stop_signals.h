// SIGTERM and SIGINT as events of a daemon's control loop.
//
// Threads: the loop's. All threads of the process must have blocked the two signals. The
// constructor throws std::system_error.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_STOP_SIGNALS_H_
#define GRADCUBE_DATAPLANE_SOCKETS_STOP_SIGNALS_H_

#include <functional>

#include "control/base/descriptor.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

class StopSignals {
 public:
  // on_signal: after the signal's number was logged. The loop outlives this object.
  StopSignals(ControlLoop& loop, std::function<void()> on_signal);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  ControlLoop& loop_;
  control::Descriptor signals_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_STOP_SIGNALS_H_
