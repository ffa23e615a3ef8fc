// An engine and the poller that runs it, as the control plane sees them: engines are reached only
// through their pollers (Poller::call).
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINE_AT_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINE_AT_H_

#include <functional>
#include <map>
#include <vector>

#include "dataplane/engine/engine.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

struct EngineAt {
  Engine* engine = nullptr;
  Poller* poller = nullptr;
  bool leader = false;  // takes the server's submissions
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

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINE_AT_H_
