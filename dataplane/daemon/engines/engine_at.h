// An engine and the poller that runs it, as the control plane sees them: engines are reached only
// through their pollers (Poller::call).
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_

#include <algorithm>
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
  // In the order in which they first come, not in that of addresses.
  std::vector<Poller*> pollers;
  for (const Thing& thing : things) {
    Poller* poller = &poller_of(thing);
    if (std::find(pollers.begin(), pollers.end(), poller) == pollers.end()) {
      pollers.push_back(poller);
    }
  }
  for (Poller* poller : pollers) {
    poller->call([&] {
      for (const Thing& thing : things) {
        if (&poller_of(thing) == poller) function(thing);
      }
    });
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_
