// One trainer's membership in a job at one server, as the daemon's engines see it.
//
// The server's leader engine (the one that runs thread 0 of lane 0) takes submissions out of the
// shared ring, once and checked, gives each the next number of its lane, and publishes it as a
// CollectiveRequest to the server's other engines. Each engine reports how far its threads have
// come; when all threads of a lane have finished a collective the leader engine writes the
// completion. Collectives of one lane complete in the order of their numbers; lanes do not wait for
// each other.
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
#include <deque>
#include <memory>
#include <vector>

#include "dataplane/engine/collective_request.h"
#include "dataplane/engine/session_region.h"
#include "dataplane/host/doorbell.h"

namespace gradcube::dataplane {

// The violation of a session whose memory has faulted.
inline constexpr const char* kMemoryFault =
    "its shared memory cannot be read or written any more (SIGBUS): memory of its server has "
    "failed, or there was none left; the kernel's log on that server says more";

// What a session has to know of its job.
struct SessionShape {
  unsigned ranks = 1;                  // of the job
  std::vector<unsigned> lane_threads;  // the threads of each lane's plan
  bool reproducible = false;           // control::JobOptions
};

// Where the collectives of a lane end when a job is reset: those up to and including `through` end
// with `code`.
struct LaneCut {
  std::uint64_t through = 0;
  std::int32_t code = 0;
  std::uint32_t notice = 0;  // the number of the Notice that says why
};
using LaneCuts = std::array<LaneCut, shared::kMaxLanes>;

class Session {
 public:
  static constexpr std::uint64_t kMaxInFlight = shared::kRingEntries;

  // region: shared with who confirms how far it may be used, while the trainer's socket is open.
  // doorbell: the daemon's end of the session's socket pair; the session owns it.
  // listeners: the doorbells of the pollers that run the server's other engines; leader: that of
  // the leader engine's poller, if there are others.
  Session(std::shared_ptr<SessionRegion> region, int doorbell, const SessionShape& shape,
          std::vector<Doorbell*> listeners, Doorbell* leader = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionRegion& region() const { return *region_; }
  int doorbell() const { return doorbell_; }
  unsigned lanes() const { return static_cast<unsigned>(lanes_.size()); }
  unsigned ranks() const { return ranks_; }

  // Leader engine -----------------------------------------------------------

  enum class Take { none, taken, violation };

  // Copies the next submission out of the ring, checks it, and publishes it. After a violation (see
  // violation()) the session must be closed; nothing more is taken.
  Take take();
  const char* violation() const { return violation_; }

  // Every collective of the lane up to and including `number` has ended with `code` (0 or
  // GRADCUBE_E...), for the reason that the notice of this number gives (0: none).
  void complete_through(unsigned lane, std::uint64_t number, std::int32_t code,
                        std::uint32_t notice = 0);

  // The least that all of the lane's threads have finished.
  std::uint64_t finished_by_all(unsigned lane) const;

  // In all lanes together, over the session's life.
  std::uint64_t completions() const { return completions_written_; }

  // Wakes the server's other pollers; call after a burst of take()s that took something.
  void announce_published() {
    for (Doorbell* poller : listeners_) poller->ring();
  }

  void set_asleep(bool asleep);
  bool has_submission() const;
  void drain_doorbell();

  // Any engine of the server, and the control thread ------------------------

  // In all lanes together.
  std::uint64_t published() const { return published_.load(std::memory_order_acquire); }
  std::uint64_t published(unsigned lane) const {
    return lanes_[lane].published.load(std::memory_order_acquire);
  }
  std::uint64_t completed(unsigned lane) const {
    return lanes_[lane].completed.load(std::memory_order_acquire);
  }
  bool anything_in_flight() const;
  const CollectiveRequest& request(unsigned lane, std::uint64_t number) const {
    return lanes_[lane].requests[number % kMaxInFlight];
  }
  void report(unsigned lane, unsigned thread, std::uint64_t finished) {
    lanes_[lane].finished[thread].value.store(finished, std::memory_order_release);
    if (leader_ != nullptr) leader_->ring();  // it may sleep, and has the completion to write
  }

 private:
  struct alignas(shared::kCacheLine) Counter {
    std::atomic<std::uint64_t> value{0};
  };
  struct Lane {
    explicit Lane(unsigned threads) : requests(kMaxInFlight), finished(threads) {}

    std::vector<CollectiveRequest> requests;
    // Written by the leader engine; the control thread reads it.
    alignas(shared::kCacheLine) std::atomic<std::uint64_t> completed{0};
    alignas(shared::kCacheLine) std::atomic<std::uint64_t> published{0};
    std::vector<Counter> finished;  // by thread
  };

  const char* check(const shared::Submission& submission, CollectiveRequest& request) const;
  const char* check_elements(const shared::Submission& submission,
                             CollectiveRequest& request) const;
  const char* check_buffer(const shared::Submission& submission, CollectiveRequest& request) const;
  void ring();

  std::shared_ptr<SessionRegion> region_;
  int doorbell_;
  unsigned ranks_;
  bool reproducible_;
  std::vector<Doorbell*> listeners_;
  Doorbell* leader_;
  const char* violation_ = nullptr;
  std::uint64_t submissions_taken_ = 0;
  alignas(shared::kCacheLine) std::atomic<std::uint64_t> published_{0};
  std::uint64_t completions_written_ = 0;
  std::deque<Lane> lanes_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_H_
