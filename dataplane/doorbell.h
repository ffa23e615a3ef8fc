#ifndef GRADCUBE_DATAPLANE_DOORBELL_H_
#define GRADCUBE_DATAPLANE_DOORBELL_H_

#include <atomic>
#include <cstdint>

namespace gradcube::dataplane {

/// Wakes a poller of this process that has gone to sleep because nothing came.
///
/// The sleeper:                               The others:
///     bell.announce_sleep();                     put something into a ring it reads;
///     if (look at every source once more)        bell.ring();
///       bell.stay_awake();
///     else
///       bell.sleep(until the next event);
///
/// Each side writes its own word, passes a full fence and then reads the other's: at least one of
/// the two sees the other, so no packet is left lying before a sleeper. While the poller is awake,
/// ring() costs a fence and a load, and is to be called once per burst.
///
/// Threads: announce_sleep, stay_awake and sleep belong to the one poller; ring and descriptor may
/// be called by any thread. Owns an eventfd.
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

  void announce_sleep() {
    asleep_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void stay_awake() { asleep_.store(false, std::memory_order_relaxed); }

  /// Sleeps until rung or for `nanoseconds` (negative: no limit) and is awake again on return.
  /// True when it was rung.
  bool sleep(std::int64_t nanoseconds);

  /// Readable while rung: for a poller that sleeps on several descriptors at once. Such a poller
  /// calls announce_sleep before its own poll() and answer() after it.
  int descriptor() const { return descriptor_; }
  /// Takes back the ring and is awake: true when there was one.
  bool answer();

 private:
  void wake();

  std::atomic<bool> asleep_{false};
  int descriptor_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DOORBELL_H_
