// From the engines to the control thread: the rare things that the control plane must act on.
//
// report() never blocks. It refuses when the queue is full or another thread holds it; the reason
// to report lasts until the control thread acts on it, so the engine tries again in its next
// iteration. descriptor() is readable while events wait. The constructor throws what
// event_descriptor() does.
#ifndef GRADCUBE_DATAPLANE_ENGINE_EVENT_QUEUE_H_
#define GRADCUBE_DATAPLANE_ENGINE_EVENT_QUEUE_H_

#include <mutex>
#include <vector>

#include "dataplane/engine/engine_event.h"
#include "dataplane/host/event_descriptor.h"

namespace gradcube::dataplane {

class EventQueue final : public EventSink {
 public:
  EventQueue() { events_.reserve(kCapacity); }

  bool report(const EngineEvent& event) override;  // any engine's thread
  std::vector<EngineEvent> take();                 // the control thread
  int descriptor() const { return descriptor_.get(); }

 private:
  static constexpr std::size_t kCapacity = 256;

  std::mutex mutex_;
  std::vector<EngineEvent> events_;
  control::Descriptor descriptor_ = event_descriptor();
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_EVENT_QUEUE_H_
