// One trainer's membership in a job at one server, as the daemon's engines see it.
//
// The server's leader engine (the one that runs thread 0) takes submissions out of the shared ring,
// once and checked, and publishes them as CollectiveRequests to the server's other engines. Each
// engine reports how far its threads have come; when all threads have finished a collective the
// leader engine writes the completion.
//
// Threads. Only the leader engine, or the control thread through Poller::call(), calls what stands
// under "Leader engine" below. Any thread calls request(), published() and completed(). The engine
// that runs a thread calls report() for it. The control thread calls everything before the engines
// know the session and after they have forgotten it. The place of a request is written again only
// after its collective has completed on every thread, which the leader engine ensures.
//
// Everything in the region is checked before it is used: see trainer/shared_layout.h.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "aggregation/element.h"
#include "dataplane/engine/session_region.h"
#include "dataplane/host/doorbell.h"

namespace gradcube::dataplane {

// A collective that a trainer has submitted, checked.
struct CollectiveRequest {
  std::uint64_t number = 0;  // the trainer's request: 1, 2, 3, ...
  std::uint8_t* buffer = nullptr;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  aggregation::DataType dtype{};
  aggregation::Operation operation{};
};

class Session {
 public:
  static constexpr std::uint64_t kMaxInFlight = shared::kRingEntries;

  // doorbell: the daemon's end of the session's socket pair; the session owns it.
  // listeners: the doorbells of the pollers that run the server's other engines.
  Session(std::unique_ptr<SessionRegion> region, int doorbell, unsigned threads,
          std::vector<Doorbell*> listeners);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionRegion& region() const { return *region_; }
  int doorbell() const { return doorbell_; }

  // Leader engine -----------------------------------------------------------

  enum class Take { none, taken, violation };

  // Copies the next submission out of the ring, checks it, and publishes it. After a violation (see
  // violation()) the session must be closed; nothing more is taken.
  Take take();
  const char* violation() const { return violation_; }

  // Takes nothing more: the trainer has gone.
  void stop_taking() { taking_ = false; }

  // Every collective up to and including `number` has ended with `code` (0 or GRADCUBE_E...).
  void complete_through(std::uint64_t number, std::int32_t code);
  std::uint64_t completed() const { return completed_.load(std::memory_order_acquire); }

  // The least that all threads have finished.
  std::uint64_t finished_by_all() const;

  // Wakes the server's other pollers; call after a burst of take()s that took something.
  void announce_published() {
    for (Doorbell* poller : listeners_) poller->ring();
  }

  void set_asleep(bool asleep);
  bool has_submission() const;
  void drain_doorbell();

  // Any engine of the server ------------------------------------------------

  std::uint64_t published() const { return published_.load(std::memory_order_acquire); }
  const CollectiveRequest& request(std::uint64_t number) const {
    return requests_[number % kMaxInFlight];
  }
  void report(unsigned thread, std::uint64_t finished) {
    finished_[thread].value.store(finished, std::memory_order_release);
  }

 private:
  const char* check(const shared::Submission& submission, CollectiveRequest& request) const;
  void ring();

  struct alignas(shared::kCacheLine) Counter {
    std::atomic<std::uint64_t> value{0};
  };

  std::unique_ptr<SessionRegion> region_;
  int doorbell_;
  std::vector<Doorbell*> listeners_;
  const char* violation_ = nullptr;
  bool taking_ = true;
  std::uint64_t submissions_taken_ = 0;
  // Written by the leader engine; the control thread reads it.
  std::atomic<std::uint64_t> completed_{0};
  std::array<CollectiveRequest, kMaxInFlight> requests_{};
  alignas(shared::kCacheLine) std::atomic<std::uint64_t> published_{0};
  std::vector<Counter> finished_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_H_
