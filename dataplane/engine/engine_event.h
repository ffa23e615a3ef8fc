// The rare things that engines tell the control thread.
#ifndef GRADCUBE_DATAPLANE_ENGINE_ENGINE_EVENT_H_
#define GRADCUBE_DATAPLANE_ENGINE_ENGINE_EVENT_H_

#include <cstdint>

#include "bcube_forwarding/address.h"
#include "dataplane/engine/plan_executor.h"

namespace gradcube::dataplane {

// Something that the control thread has to act on. A disagreement or an overflow is told once of
// each executor and epoch; again only if it turns out to concern an earlier collective. A violation
// is told once. Progress: more has completed of a held job since hold() or since it was last told.
struct EngineEvent {
  enum class Kind : std::uint8_t {
    disagreement,
    overflow,
    violation,
    progress,
    hub_disagreement,  // trainers have pushed a hub's key differently; told once of each executor
  };
  Kind kind{};
  std::uint32_t job = 0;
  std::uint16_t epoch = 0;
  bcube::ServerId server = 0;  // where it was seen
  Disagreement disagreement{};
  Overflow overflow{};
  std::uint32_t hub_key = 0;  // of a hub_disagreement: its number in the hub's model
};

// Where engines put events; the control thread empties it (event_queue.h).
class EventSink {
 public:
  virtual ~EventSink() = default;
  // False: there is no room, and the engine tries again. On the engine's thread; must not block.
  virtual bool report(const EngineEvent& event) = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_ENGINE_EVENT_H_
