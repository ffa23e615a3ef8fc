// A port whose neighbours are in other processes: of what comes from there its poller learns by a
// descriptor, or by a look at the right time.
//
// Threads: the queue's own, as port.h says; wake_descriptor() any.
#ifndef GRADCUBE_DATAPLANE_FABRIC_WAKING_PORT_H_
#define GRADCUBE_DATAPLANE_FABRIC_WAKING_PORT_H_

#include <cstdint>

#include "dataplane/fabric/port.h"
#include "dataplane/host/clock.h"

namespace gradcube::dataplane {

class WakingPort : public Port {
 public:
  // For Poller::watch(): readable when a frame has arrived. -1: there is none.
  virtual int wake_descriptor(std::uint16_t queue) const = 0;
  // The earliest time at which the queue may do something that the descriptor does not announce;
  // kNever if there is nothing.
  virtual Nanoseconds next_event(std::uint16_t queue) const = 0;
  // Around the poller's sleep, as a Pollable's.
  virtual void prepare_wait(std::uint16_t /*queue*/) {}
  virtual void finish_wait(std::uint16_t /*queue*/) {}

 protected:
  using Port::Port;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_WAKING_PORT_H_
