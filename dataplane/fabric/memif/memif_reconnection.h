// Brings links back whose daemon of switches has ended and been started again. The driver connects
// when a device is started, and never again. So, as long as it exists, this starts every port anew
// that has no link, until it has one: at once when the link is lost, and then again after pauses
// that double, from kFirstPause to kLongestPause, because the switches take a while to start and a
// host may be busy when they answer.
//
// Ownership: the ports outlive it.
//
// Threads: the control thread makes and destroys it. It works on EAL's interrupt thread, which is
// also where the driver takes a link down that it has lost: so the two never meet.
//
// Errors: the constructor throws control::SetupError.
#ifndef GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_RECONNECTION_H_
#define GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_RECONNECTION_H_

#include <chrono>
#include <vector>

#include "dataplane/fabric/nic/ethdev_port.h"

namespace gradcube::dataplane {

class MemifReconnection {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{100};
  static constexpr std::chrono::milliseconds kFirstPause{200};
  static constexpr std::chrono::milliseconds kLongestPause{3200};

  // ports: of devices that connect, which have just been started.
  explicit MemifReconnection(const std::vector<EthdevPort*>& ports);
  ~MemifReconnection();
  MemifReconnection(const MemifReconnection&) = delete;
  MemifReconnection& operator=(const MemifReconnection&) = delete;

 private:
  using SteadyClock = std::chrono::steady_clock;

  struct Link {
    EthdevPort* port;
    SteadyClock::time_point next_try;
    std::chrono::milliseconds pause = kFirstPause;
  };

  static void look(void* self);
  static void look_at(Link& link, SteadyClock::time_point now);

  std::vector<Link> links_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_RECONNECTION_H_
