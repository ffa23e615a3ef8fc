// What one engine has of a job's hub: its executors, and the packets that carry their segments.
//
// The packets are reserved beside those of the job. A segment of a hub is landed when it arrives,
// so all packets come back, and one window is enough to go on; more is faster.
//
// Ownership: of its EngineJob; the ServerHub is shared by all engines of the server. Packets point
// into it and into the trainers' memory: destroy it when payloads().references() is 0.
//
// Threads: made and destroyed by the control thread; in between the engine's.
#ifndef GRADCUBE_DATAPLANE_ENGINE_HUB_ENGINE_HUB_H_
#define GRADCUBE_DATAPLANE_ENGINE_HUB_ENGINE_HUB_H_

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "dataplane/engine/flows/payload_packets.h"
#include "dataplane/engine/hub/hub_executor.h"
#include "dataplane/engine/hub/server_hub.h"

namespace gradcube::dataplane {

class EngineHub {
 public:
  EngineHub(std::shared_ptr<ServerHub> hub, PacketReservation reserved)
      : hub_(std::move(hub)), payloads_(std::move(reserved)) {}
  EngineHub(const EngineHub&) = delete;
  EngineHub& operator=(const EngineHub&) = delete;

  // place: of the executor in the hub's model.
  void add_executor(EngineJob& job, std::size_t place, const FlowSettings& flows, unsigned window) {
    executors_.emplace_back(*this, job, *hub_, place, flows, window);
  }

  ServerHub& hub() { return *hub_; }
  const ServerHub& hub() const { return *hub_; }
  std::deque<HubExecutor>& executors() { return executors_; }
  PayloadPackets& payloads() { return payloads_; }
  const PayloadPackets& payloads() const { return payloads_; }

  bool active() const {
    return std::any_of(executors_.begin(), executors_.end(),
                       [](const HubExecutor& executor) { return executor.active(); });
  }
  template <typename Function>
  void for_each_flow(const Function& function) {
    for (HubExecutor& executor : executors_) {
      for (Flow& flow : executor.flows()) function(flow);
    }
  }

 private:
  std::shared_ptr<ServerHub> hub_;
  PayloadPackets payloads_;
  std::deque<HubExecutor> executors_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HUB_ENGINE_HUB_H_
