// What a poller iterates: an engine, a shard of an emulated switch. A poller knows neither, and
// neither knows the poller.
//
// Threads: every member is called on the poller's thread. Costs one virtual call per iteration,
// never one per packet.
#ifndef GRADCUBE_DATAPLANE_HOST_POLLABLE_H_
#define GRADCUBE_DATAPLANE_HOST_POLLABLE_H_

#include "dataplane/host/clock.h"

namespace gradcube::dataplane {

class Pollable {
 public:
  virtual ~Pollable() = default;

  // Does what is due at `now` and returns how much it moved (packets, requests): 0 when idle.
  virtual unsigned poll(Nanoseconds now) = 0;
  // Within an iteration, while something urgent is under way (urgency.h): of poll() what concerns
  // that alone.
  virtual unsigned poll_urgent(Nanoseconds /*now*/) { return 0; }

  // The earliest time at which it has something to do that no doorbell announces; kNever if nothing
  // is due. The poller may sleep until then.
  virtual Nanoseconds next_event() const = 0;

  // Sleep. prepare_wait() tells everyone who may bring work that the poller is about to sleep and
  // has to be woken; poll() is called once more after it. finish_wait() takes that back.
  virtual void prepare_wait() {}
  virtual void finish_wait() {}
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_POLLABLE_H_
