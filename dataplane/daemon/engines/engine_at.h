// An engine and the poller that runs it, as the control plane sees them: engines are reached only
// through their pollers (Poller::call).
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_

#include <algorithm>
#include <functional>
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
// call per poller, in the order in which they first come. Returns when all are done. Needs no
// memory itself, so that what has failed at one of them can be undone at all.
template <typename Thing, typename Function>
void on_each(const std::vector<Thing>& things, const Function& function) {
  for (auto first = things.begin(); first != things.end(); ++first) {
    Poller& poller = poller_of(*first);
    const auto is_its = [&poller](const Thing& thing) { return &poller_of(thing) == &poller; };
    if (std::any_of(things.begin(), first, is_its)) continue;
    const auto on_all_of_it = [&] {
      for (auto thing = first; thing != things.end(); ++thing) {
        if (is_its(*thing)) function(*thing);
      }
    };
    poller.call(std::ref(on_all_of_it));
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_ENGINE_AT_H_
