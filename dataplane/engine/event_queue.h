// From the engines to the control thread: the rare things that the control plane must act on.
//
// report() never blocks. It refuses when the queue is full or another thread holds it; the reason
// to report lasts until the control thread acts on it, so the engine tries again in its next
// iteration. What has been reported is not reported again, and so an event is dropped only when it
// has been handled. descriptor() is readable from a report to the next take(). The constructor
// throws what event_descriptor() does.
#ifndef GRADCUBE_DATAPLANE_ENGINE_EVENT_QUEUE_H_
#define GRADCUBE_DATAPLANE_ENGINE_EVENT_QUEUE_H_

#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <sys/eventfd.h>
#include <vector>

#include "dataplane/engine/engine_event.h"
#include "dataplane/host/event_descriptor.h"

namespace gradcube::dataplane {

class EventQueue final : public EventSink {
 public:
  EventQueue() { events_.reserve(kCapacity); }

  bool report(const EngineEvent& event) override;  // any engine's thread
  // Control thread: handle(event) for each that waits, oldest first. Needs no memory itself. Where
  // handle() throws, this one throws the same, and the others wait for the next take(): also that
  // event, if there was no memory for it (std::bad_alloc).
  template <typename Handle>
  void take(const Handle& handle) {
    eventfd_t rung = 0;
    eventfd_read(descriptor_.get(), &rung);
    // What comes meanwhile, beyond these, makes the descriptor readable again.
    for (std::size_t handled = 0; handled < kCapacity; ++handled) {
      const std::optional<EngineEvent> event = first();
      if (!event.has_value()) return;
      try {
        handle(*event);
      } catch (const std::bad_alloc&) {
        throw;
      } catch (...) {
        drop_first();
        throw;
      }
      drop_first();
    }
  }
  int descriptor() const { return descriptor_.get(); }

 private:
  std::optional<EngineEvent> first();
  void drop_first();

  static constexpr std::size_t kCapacity = 256;

  std::mutex mutex_;
  std::vector<EngineEvent> events_;
  control::Descriptor descriptor_ = event_descriptor();
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_EVENT_QUEUE_H_
