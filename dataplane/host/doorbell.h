#ifndef GRADCUBE_DATAPLANE_HOST_DOORBELL_H_
#define GRADCUBE_DATAPLANE_HOST_DOORBELL_H_

#include <atomic>
#include <cstdint>

namespace gradcube::dataplane {

/// Wakes a poller of this process that has gone to sleep because nothing came.
///
/// The sleeper:                               The others:
///     bell.prepare_wait();                       put something into a ring it reads;
///     if (nothing at any source)                 bell.ring();
///       wait on bell.descriptor();
///     bell.finish_wait();
///
/// Each side writes its own word, passes a full fence and then reads the other's: at least one of
/// the two sees the other's write, so no wake-up is lost. While the poller is awake,
/// ring() costs a fence and a load, and is to be called once per burst.
///
/// Threads: prepare_wait and finish_wait belong to the one poller; ring and descriptor may be called
/// by any thread. Owns an eventfd.
class Doorbell {
 public:
  /// Throws std::system_error when the process may open no more files.
  Doorbell();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  void ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_relaxed)) wake();
  }

  void prepare_wait() {
    asleep_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  /// Awake again: consumes the ring. True when there was one.
  bool finish_wait();

  /// Readable while rung.
  int descriptor() const { return descriptor_; }

 private:
  void wake();

  std::atomic<bool> asleep_{false};
  int descriptor_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_DOORBELL_H_
