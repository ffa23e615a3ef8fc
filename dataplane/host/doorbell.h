// Wakes a poller of this process that sleeps because it has no work.
//
// The sleeper:                               The others:
//     bell.prepare_wait();                       put something into a ring it reads;
//     if (nothing at any source)                 bell.ring();
//       wait on bell.descriptor();
//     bell.finish_wait();
//
// Each side writes its own word, passes a full fence and then reads the other's word. At least one
// side sees the other's write, so no wake-up is lost. While the poller is awake, ring() costs a
// fence and a load. Call it once per burst.
//
// Threads: only the poller calls prepare_wait() and finish_wait(). Any thread may call ring() and
// descriptor(). The constructor throws what event_descriptor() does.
#ifndef GRADCUBE_DATAPLANE_HOST_DOORBELL_H_
#define GRADCUBE_DATAPLANE_HOST_DOORBELL_H_

#include <atomic>

#include "dataplane/host/event_descriptor.h"

namespace gradcube::dataplane {

class Doorbell {
 public:
  void ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_relaxed)) wake();
  }

  void prepare_wait() {
    asleep_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Awake again: consumes the ring. True if it was rung.
  bool finish_wait();

  // Readable while rung.
  int descriptor() const { return descriptor_.get(); }

 private:
  void wake();

  std::atomic<bool> asleep_{false};
  control::Descriptor descriptor_ = event_descriptor();
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_DOORBELL_H_
