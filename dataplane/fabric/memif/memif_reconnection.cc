#include "dataplane/fabric/memif/memif_reconnection.h"

#include <algorithm>
#include <rte_alarm.h>

#include "control/base/errors.h"
#include "dataplane/fabric/memif/quiet_memif.h"

namespace gradcube::dataplane {

namespace {

int set_alarm(rte_eal_alarm_callback call, void* argument) {
  return rte_eal_alarm_set(std::chrono::microseconds(MemifReconnection::kLookEvery).count(), call,
                           argument);
}

}  // namespace

// The ports are given the longest pause for their first link.
MemifReconnection::MemifReconnection(const std::vector<EthdevPort*>& ports) {
  for (EthdevPort* port : ports) links_.push_back({port, SteadyClock::now() + kLongestPause});
  if (set_alarm(look, this) != 0) {
    throw control::SetupError("DPDK sets no alarm, by which memif links are looked at");
  }
}

// Waits for a look that is under way.
MemifReconnection::~MemifReconnection() { rte_eal_alarm_cancel(look, this); }

void MemifReconnection::look(void* self) {
  auto& own = *static_cast<MemifReconnection*>(self);
  const SteadyClock::time_point now = SteadyClock::now();
  for (Link& link : own.links_) look_at(link, now);
  set_alarm(look, self);
}

void MemifReconnection::look_at(Link& link, SteadyClock::time_point now) {
  if (link.port->has_link()) {
    link.pause = kFirstPause;
    link.next_try = now;
  } else if (now >= link.next_try) {
    const QuietMemif quiet;  // it would tell each time that nobody listens
    // Where nobody listens, nobody is disturbed by the next try.
    if (link.port->restart()) link.pause = std::min(2 * link.pause, kLongestPause);
    link.next_try = now + link.pause;
  }
}

}  // namespace gradcube::dataplane
