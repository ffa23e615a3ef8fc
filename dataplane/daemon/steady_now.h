// The daemon's clock for jobs: what time is handed to the nodes.
#ifndef GRADCUBE_DATAPLANE_DAEMON_STEADY_NOW_H_
#define GRADCUBE_DATAPLANE_DAEMON_STEADY_NOW_H_

#include <chrono>

#include "control/jobs/job_actions.h"

namespace gradcube::dataplane {

inline control::Instant steady_now() {
  return std::chrono::duration_cast<control::Instant>(
      std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_STEADY_NOW_H_
