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

  // Whether the poller must stay awake for it: it has timers running, or work that nobody announces
  // by a doorbell.
  virtual bool busy() const = 0;

  // The earliest time at which it has something to do by itself; kNever if nothing is due.
  virtual Nanoseconds next_event() const = 0;

  // Sleep. prepare_wait() tells everyone who may bring work that the poller is about to sleep and
  // has to be woken; poll() is called once more after it. finish_wait() takes that back.
  virtual void prepare_wait() {}
  virtual void finish_wait() {}
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_POLLABLE_H_
