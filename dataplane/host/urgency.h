// Whether something urgent is under way at a poller: what those that it polls tell it.
//
// An iteration takes as long as all that moves in it. What goes forth and back between two of them,
// an exchange an iteration, takes many times as long while others have much to move. So as long as
// something urgent is under way, the poller looks for it in between (poller.h).
//
// Owned by the poller; used on its thread alone, in attended time.
#ifndef GRADCUBE_DATAPLANE_HOST_URGENCY_H_
#define GRADCUBE_DATAPLANE_HOST_URGENCY_H_

#include "protocol/time.h"

namespace gradcube::dataplane {

class Urgency {
 public:
  // Longer than an iteration, and than a trainer needs to submit what comes next.
  static constexpr protocol::Nanoseconds kRemembered = protocol::kMillisecond;

  // Something urgent has been sent. It may wait for others then: soon it is not urgent any more.
  void record(protocol::Nanoseconds now) { until_ = now + kRemembered; }
  bool any(protocol::Nanoseconds now) const { return now < until_; }

 private:
  protocol::Nanoseconds until_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_URGENCY_H_
