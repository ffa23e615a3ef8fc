// Whether something urgent is under way at a poller (poller.h): what those that it polls tell it.
//
// It is remembered for a while, so that who sends it need not say when it has ended, and what waits
// for somebody who is late costs nothing.
//
// Owned by the poller; used on its thread alone, in attended time.
#ifndef GRADCUBE_DATAPLANE_HOST_URGENCY_H_
#define GRADCUBE_DATAPLANE_HOST_URGENCY_H_

#include "protocol/time.h"

namespace gradcube::dataplane {

class Urgency {
 public:
  // Longer than a trainer needs to submit what comes next, and some iterations of a busy poller.
  static constexpr protocol::Nanoseconds kRemembered = 4 * protocol::kMillisecond;

  // Something urgent has been sent.
  void record(protocol::Nanoseconds now) { until_ = now + kRemembered; }
  bool any(protocol::Nanoseconds now) const { return now < until_; }

 private:
  protocol::Nanoseconds until_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_URGENCY_H_
