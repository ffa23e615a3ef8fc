// The engines of all servers that this process runs, as the control plane sees them.
//
// Engines are reached only through their pollers (Poller::call). The control thread's; it exists as
// long as the daemon.
#ifndef GRADCUBE_DATAPLANE_DAEMON_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "aggregation/kernels.h"
#include "control/plan/topology.h"
#include "dataplane/engine/engine.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

struct EngineAt {
  Engine* engine = nullptr;
  Poller* poller = nullptr;
  bool leader = false;  // takes the server's submissions
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual const control::Topology& topology() const = 0;
  virtual const aggregation::Kernels& kernels() const = 0;
  // In the order of their queues; the leader engine is among them.
  virtual const std::vector<EngineAt>& engines(bcube::ServerId server) const = 0;
  // Frees every packet that is under way between the servers. Ends the cluster's traffic for good:
  // no poller may run any more.
  virtual void discard_packets() = 0;
};

// Runs `function` on each of the engines, on its poller's thread; one call per poller. Returns when
// all are done.
inline void on_each(const std::vector<EngineAt>& engines,
                    const std::function<void(const EngineAt&)>& function) {
  std::map<Poller*, std::vector<const EngineAt*>> by_poller;
  for (const EngineAt& at : engines) by_poller[at.poller].push_back(&at);
  for (const auto& [poller, group] : by_poller) {
    poller->call([&function, &group = group] {
      for (const EngineAt* at : group) function(*at);
    });
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_CLUSTER_H_
