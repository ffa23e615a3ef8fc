// The membership of one server's trainers in a job, as the daemon's engines see it. Mostly that is
// one trainer; with several, each has a region with rings of its own, and is named by its number.
//
// The server's leader engine (the one that runs thread 0 of lane 0) takes submissions out of the
// shared rings, once and checked, and gives each the next number of its trainer's lane. When all
// trainers have submitted the collective with some number, it publishes it as a CollectiveRequest
// to the server's other engines. Where they have submitted different ones, the request says so: it
// can never run, and the job is reset later. Each engine reports how far its threads have come;
// when all threads of a lane have finished a collective the leader engine writes the completions.
// Collectives of one lane complete in the order of their numbers; lanes do not wait for each other.
// A collective whose plan the leader engine runs alone, as one of a single thread may be, ends
// without the other engines: they sleep on, and pass it when they next wake, which is at least
// every kMostBegun collectives of the lane.
// Messages between trainers belong to no lane: each waits in the table of mail (mail_table.h), and
// the leader engine alone serves them (mailroom.h). What is pushed to the job's hub belongs to no
// lane either: it goes to the hub's board (dataplane/hub/hub_board.h).
//
// Threads. Only the leader engine, or the control thread through Poller::call(), calls what stands
// under "Leader engine" below. Any thread calls request(), published() and completed(). The engine
// that runs a thread calls report() for it. The control thread calls everything before the engines
// know the session and after they have forgotten it, and the counts of a trainer at any time. The
// place of a request is written again only after every thread has passed its collective, which the
// leader engine ensures.
//
// Everything in a region is checked before it is used: see trainer/shared_layout.h.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_SESSION_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_SESSION_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "control/plan/plan_choice.h"
#include "dataplane/engine/hub/hub_pushes.h"
#include "dataplane/engine/memory/session_region.h"
#include "dataplane/engine/session/collective_request.h"
#include "dataplane/engine/session/mail_table.h"
#include "dataplane/host/doorbell.h"

namespace gradcube::dataplane {

// The violation of a session whose memory has faulted.
inline constexpr const char* kMemoryFault =
    "its shared memory cannot be read or written any more (SIGBUS): memory of its server has "
    "failed, or there was none left; the kernel's log on that server says more";

// What a session has to know of its job.
struct SessionShape {
  unsigned ranks = 1;                  // trainers of the job, on all servers
  std::vector<unsigned> lane_threads;  // the threads of each lane's plan
  bool reproducible = false;           // control::JobOptions
  unsigned trainers = 1;               // of this server
};

// What of a lane the leader engine runs.
struct LeaderPart {
  std::shared_ptr<const control::PlanChoice> choice;  // the lane's
  std::vector<bool> runs;                             // by thread, among those of all plans
  std::vector<bool> runs_alone;                       // by plan: it runs all its threads
};

// Where the collectives of a lane end when a job is reset: those up to and including `through` end
// with `code`.
struct LaneCut {
  std::uint64_t through = 0;
  std::int32_t code = 0;
  std::uint32_t notice = 0;  // the number of the Notice that says why
};

// Those of a lane, of the resets so far: what one has failed keeps its reason when the next comes,
// also where a trainer has yet to submit it. Of many only the newest are kept; what older ones have
// failed, and a trainer has still not submitted, has the reason of the next one.
class CutsOfLane {
 public:
  static constexpr std::size_t kKept = 4;

  // Of the last reset.
  std::uint64_t through() const { return cuts_.back().through; }
  void add(const LaneCut& cut) {
    if (cut.through <= through()) return;
    std::shift_left(cuts_.begin(), cuts_.end(), 1);
    cuts_.back() = cut;
  }
  // Ascending; unused ones end nothing.
  auto begin() const { return cuts_.begin(); }
  auto end() const { return cuts_.end(); }

 private:
  std::array<LaneCut, kKept> cuts_{};
};
using LaneCuts = std::array<CutsOfLane, shared::kMaxLanes>;

class Session {
 public:
  static constexpr std::uint64_t kMaxInFlight = shared::kRingEntries;
  // Of a lane's collectives that have not ended, those that an executor has begun at most. Later
  // ones wait here: the links are busy with these.
  static constexpr std::uint64_t kMostBegun = 64;

  // Of the server's first trainer, with this number among them.
  // region: shared with who confirms how far it may be used, while the trainer's socket is open.
  // doorbell: the daemon's end of the trainer's socket pair; the session owns it.
  // listeners: the doorbells of the pollers that run the server's other engines; leader: that of
  // the leader engine's poller, if there are others.
  Session(std::shared_ptr<SessionRegion> region, int doorbell, const SessionShape& shape,
          std::vector<Doorbell*> listeners, Doorbell* leader = nullptr, unsigned local = 0);
  // Of a server that has none of the job's trainers: its hub's aggregator. Nothing is ever taken.
  Session(std::vector<Doorbell*> listeners, Doorbell* leader);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Before the engines know the session: the trainer of this number, which is not there yet, nor is
  // where this throws as there is no memory for it.
  void add(unsigned local, std::shared_ptr<SessionRegion> region, int doorbell);
  // Leader engine, or while no engine knows the session: nothing is taken from this trainer any
  // more, and its violation is forgotten.
  void dismiss(unsigned local);
  bool has(unsigned local) const { return trainers_[local].region != nullptr; }
  // Before the engines know the session. Until then each collective concerns all threads.
  void set_leader_part(unsigned lane, LeaderPart part) { lanes_[lane].leader = std::move(part); }
  // Leader engine: whether engines know the session, and so may look at requests.
  void set_attached(bool attached) { attached_ = attached; }

  unsigned trainers() const { return static_cast<unsigned>(trainers_.size()); }
  // Of a trainer that is there.
  const SessionRegion& region(unsigned local = 0) const { return *trainers_[local].region; }
  // For a thread that reads there while its trainer may go.
  std::shared_ptr<const SessionRegion> shared_region(unsigned local) const {
    return trainers_[local].region;
  }
  int doorbell(unsigned local = 0) const { return trainers_[local].doorbell; }
  // Of the largest region.
  std::uint64_t region_bytes() const;
  // Of all regions, as far as they take memory.
  std::uint64_t resident_bytes() const;
  unsigned lanes() const { return static_cast<unsigned>(lanes_.size()); }

  // Leader engine -----------------------------------------------------------

  enum class Take { none, taken, violation };

  // Copies the next submission out of a trainer's ring, checks it, and publishes what all trainers
  // have submitted. After a violation (see violation()) the session must be closed; nothing more is
  // taken.
  Take take();
  // Of any trainer.
  const char* violation() const { return violation_; }
  unsigned violator() const { return violator_; }

  // Every collective of the lane up to and including `number` that a trainer has submitted has
  // ended with `code` (0 or GRADCUBE_E...), for the reason that the notice of this number gives (0:
  // none). Wakes the server's other pollers if one of them may have waited for this end before it
  // begins more.
  void complete_through(unsigned lane, std::uint64_t number, std::int32_t code,
                        std::uint32_t notice = 0);
  void complete_through(unsigned lane, const CutsOfLane& cuts) {
    for (const LaneCut& cut : cuts) complete_through(lane, cut.through, cut.code, cut.notice);
  }

  // Messages between trainers: what was taken of them and has not ended.
  MailTable& mail() { return mail_; }
  // Tells the trainer, and forgets it. bytes: of the message.
  void end_mail(std::uint32_t number, std::int32_t code, std::uint64_t bytes,
                std::uint32_t notice = 0);
  // All of it.
  void fail_mail(std::int32_t code, std::uint32_t notice);

  // The job's hub; null if it has none. From set_hub() on pushes are taken; end_hub() fails all
  // that have not ended, and those that still come, until there is another one. It may go when
  // end_hub() has returned: no other engine looks into it here.
  void set_hub(ServerHub& hub) { pushes_.set(hub); }
  void end_hub(std::int32_t code, std::uint32_t notice = 0);
  ServerHub* hub() const { return pushes_.hub(); }
  // Tells the trainers of the rounds that have ended, but for those that may have been computed
  // from zeros (guarded_memory.h): these are held up, and nobody announces when no longer.
  struct EndedPushes {
    unsigned rounds = 0;
    bool held_up = false;
  };
  EndedPushes end_pushes();

  // The least that those of the lane's threads have finished that it concerns. May become less when
  // something is published that concerns more of them.
  std::uint64_t finished_by_all(unsigned lane) const;

  // In all lanes and of all trainers together, over the session's life.
  std::uint64_t completions() const;

  // Wakes the server's other pollers if what was taken concerns one of them, or if they lie far
  // behind; call after a burst of take()s that took something.
  void wake_pollers();

  // Likewise the leader engine's, for what another engine has told the hub's board.
  void wake_leader() {
    if (leader_ != nullptr) leader_->ring();
  }

  void set_asleep(bool asleep);
  bool has_submission() const;
  // Of one trainer.
  bool has_submission(unsigned local) const { return has_submission(trainers_[local]); }
  void drain_doorbells();

  // Any engine of the server, and the control thread ------------------------

  // In all lanes together.
  std::uint64_t published() const { return published_.load(std::memory_order_acquire); }
  // What all trainers have submitted.
  std::uint64_t published(unsigned lane) const {
    return lanes_[lane].published.load(std::memory_order_acquire);
  }
  // What has ended for all trainers.
  std::uint64_t completed(unsigned lane) const;
  // Of one trainer.
  std::uint64_t submitted(unsigned lane, unsigned local) const {
    return trainers_[local].lanes[lane].taken.load(std::memory_order_acquire);
  }
  std::uint64_t ended(unsigned lane, unsigned local) const {
    return trainers_[local].lanes[lane].ended.load(std::memory_order_acquire);
  }
  // Collectives, pushes and messages.
  bool anything_in_flight() const { return mail_.any() || anything_shared_in_flight(); }
  // Without messages, each of which concerns two trainers alone.
  bool anything_shared_in_flight() const;
  // To the hub, of all trainers.
  std::uint64_t pushes_in_flight() const {
    return pushes_in_flight_.load(std::memory_order_relaxed);
  }
  std::uint32_t unanswered() const { return mail_.unanswered(); }
  bool any_deserters() const { return mail_.deserters() != 0; }
  MailTable::Counts mail_counts(unsigned local) const { return mail_.counts(local); }
  // As a trainer has submitted it. Those of all trainers are alike but for their buffers and names,
  // if that of the first says `agreed`.
  const CollectiveRequest& request(unsigned lane, std::uint64_t number, unsigned local = 0) const {
    return trainers_[local].lanes[lane].requests[number % kMaxInFlight];
  }
  void report(unsigned lane, unsigned thread, std::uint64_t finished) {
    lanes_[lane].finished[thread].value.store(finished, std::memory_order_release);
    wake_leader();  // it may sleep, and has the completion to write
  }

 private:
  static constexpr std::uint32_t kNoMail = UINT32_MAX;
  struct alignas(shared::kCacheLine) Counter {
    std::atomic<std::uint64_t> value{0};
  };
  struct Lane {
    explicit Lane(unsigned threads) : finished(threads) {}

    alignas(shared::kCacheLine) std::atomic<std::uint64_t> published{0};
    std::vector<Counter> finished;  // by thread
    // Leader engine; by number: the newest collective that concerns other engines, what was
    // published when their pollers were woken last, and what all threads have passed at least.
    LeaderPart leader;
    std::uint64_t concerns_all = 0;
    std::uint64_t woken_at = 0;
    std::uint64_t passed = 0;

    bool is_leaders(unsigned thread) const {
      return leader.choice == nullptr || leader.runs[thread];
    }
  };
  // Written by the leader engine; the control thread reads the counts.
  struct TrainerLane {
    TrainerLane() : requests(kMaxInFlight) {}

    std::vector<CollectiveRequest> requests;
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> ended{0};
  };
  struct Trainer {
    std::shared_ptr<SessionRegion> region;
    int doorbell = -1;
    bool dismissed = false;
    std::uint64_t submissions_taken = 0;
    std::uint64_t withdrawals = 0;  // of those: the others end with a completion each
    std::uint64_t completions_written = 0;
    std::deque<TrainerLane> lanes;
    std::vector<std::uint32_t> mail;  // in flight, by the trainer's places; kNoMail
  };

  Take take(unsigned local);
  Take violate(unsigned local, const char* violation);
  void publish_common(unsigned lane);
  bool agree_on(unsigned lane, std::uint64_t number) const;
  bool concerns_all(unsigned lane, std::uint64_t number) const;
  bool has_place(Lane& lane, std::uint64_t number) const;
  void ring_pollers() {
    for (Doorbell* poller : listeners_) poller->ring();
  }
  Take take_mail(Trainer& trainer, unsigned local, const shared::Submission& submission);
  Take take_withdrawal(Trainer& trainer, unsigned local, const shared::Submission& submission);
  Take take_push(Trainer& trainer, unsigned local, const shared::Submission& submission);
  static void complete(Trainer& trainer, std::uint64_t request, std::int32_t code,
                       std::uint32_t notice, std::uint64_t bytes = 0);
  void count_pushes();
  static void publish_completions(const Trainer& trainer);
  const char* check(const SessionRegion& region, const shared::Submission& submission,
                    CollectiveRequest& request) const;
  const char* check_elements(const shared::Submission& submission,
                             CollectiveRequest& request) const;
  const char* check_buffer(const SessionRegion& region, const shared::Submission& submission,
                           CollectiveRequest& request) const;
  void end(Trainer& trainer, unsigned lane, std::uint64_t through, std::int32_t code,
           std::uint32_t notice);
  static bool has_submission(const Trainer& trainer);
  static void count_taken(Trainer& trainer);
  static void ring(const Trainer& trainer);
  template <typename Function>
  void for_each_trainer(const Function& function) const {
    for (const Trainer& trainer : trainers_) {
      if (trainer.region != nullptr) function(trainer);
    }
  }

  unsigned ranks_;
  bool reproducible_;
  std::vector<Doorbell*> listeners_;
  Doorbell* leader_;
  bool attached_ = false;
  const char* violation_ = nullptr;
  unsigned violator_ = 0;
  unsigned next_trainer_ = 0;  // to take from
  alignas(shared::kCacheLine) std::atomic<std::uint64_t> published_{0};
  std::deque<Trainer> trainers_;
  std::deque<Lane> lanes_;
  MailTable mail_;
  HubPushes pushes_;
  std::atomic<std::uint64_t> pushes_in_flight_{0};  // written by the leader engine
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_SESSION_H_
