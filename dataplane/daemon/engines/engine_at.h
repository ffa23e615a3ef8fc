// An engine and the poller that runs it, as the control plane sees them: engines are reached only
// through their pollers (Poller::call).
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_

#include <map>
#include <vector>

#include "dataplane/engine/engine.h"
#include "dataplane/host/packet_memory.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

struct EngineAt {
  Engine* engine = nullptr;
  Poller* poller = nullptr;
  PacketShare* packets = nullptr;  // that its jobs reserve
  bool leader = false;             // takes the server's submissions
};

inline Poller& poller_of(const EngineAt& at) { return *at.poller; }

// Runs `function` on each of the things that belong to a poller (poller_of()), on its thread; one
// call per poller. Returns when all are done.
template <typename Thing, typename Function>
void on_each(const std::vector<Thing>& things, const Function& function) {
  std::map<Poller*, std::vector<const Thing*>> by_poller;
  for (const Thing& thing : things) by_poller[&poller_of(thing)].push_back(&thing);
  for (const auto& [poller, group] : by_poller) {
    poller->call([&function, &group = group] {
      for (const Thing* thing : group) function(*thing);
    });
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_
