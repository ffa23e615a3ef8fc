// One lcore's loop: it turns its engines and its share of the emulated switches, runs what the
// control thread asks of it, and goes to sleep when there is nothing to do.
//
// Idle (`--idle`): `spin` never gives the core away. `adaptive` spins for a moment, then yields to
// whoever shares the core (two pollers that share one without yielding are hundreds of times
// slower), and, when no collective is in flight, sleeps on its doorbell and its sessions' until a
// trainer, another poller or the control thread wakes it.
//
// Stalls. Where the scheduler takes the core away, the engines' time stands still: it advances at
// most a millisecond per turn. Their timers ask how long a neighbour has been silent while we
// listened, and we did not. The switches' time is the clock's: their wires do not wait for us.
//
// Threads: run() and turn() on the lcore's thread. The control thread changes what the poller or
// its engines hold only through call(), which runs a function between two turns and waits for it;
// stop() and doorbell() are for any thread.
#ifndef GRADCUBE_DATAPLANE_POLLER_H_
#define GRADCUBE_DATAPLANE_POLLER_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "control/cluster_settings.h"
#include "dataplane/clock.h"
#include "dataplane/doorbell.h"
#include "dataplane/emulated_switch.h"
#include "dataplane/engine.h"
#include "dataplane/relaxed_counter.h"

namespace gradcube::dataplane {

class Poller {
 public:
  Poller(Clock& clock, control::Idle idle);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Before run(), or through call(). The poller owns neither.
  void add(Engine& engine) { engines_.push_back(&engine); }
  void add(SwitchShard& shard) { shards_.push_back(&shard); }
  void watch(Session& session);
  void unwatch(Session& session);

  Doorbell& doorbell() { return doorbell_; }

  // Turns until stop(). Whoever starts the thread for run() says so first with announce_run(): from
  // then on call() waits for that thread.
  void announce_run() { running_.store(true); }
  void run();
  void stop();

  // One turn of the loop; returns what it moved, 0 when idle.
  unsigned turn();

  // Runs `function` on the poller's thread between two turns and returns when it is done; runs it
  // at once when nobody is in run(). One caller at a time. Throws control::SetupError when the
  // poller does not answer within 5 s.
  void call(const std::function<void()>& function);

  // Turns that took longer than a millisecond: the core was taken away, or a burst was very long.
  std::uint64_t stalls() const { return stalls_.value(); }

 private:
  void idle(std::int64_t now);
  bool may_sleep() const;
  std::int64_t next_event() const;
  void sleep(std::int64_t now);
  void serve_call();

  Clock& clock_;
  control::Idle idle_mode_;
  Doorbell doorbell_;
  int epoll_ = -1;
  std::vector<Engine*> engines_;
  std::vector<SwitchShard*> shards_;
  std::vector<Session*> sessions_;
  std::atomic<bool> running_{false};
  std::atomic<bool> stop_{false};
  std::atomic<const std::function<void()>*> requested_{nullptr};
  std::atomic<std::uint64_t> served_{0};
  std::exception_ptr failure_;  // of the call that was served last; published by served_
  std::int64_t idle_since_ = 0;
  std::int64_t last_turn_ = 0;
  std::int64_t stalled_ = 0;
  RelaxedCounter stalls_;
};

}  // namespace gradcube::dataplane

#endif
