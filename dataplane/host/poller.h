// One lcore's loop: it polls what it was given (engines, shards of emulated switches), runs what
// the control thread asks of it, and sleeps when there is nothing to do.
//
// Idle (`--idle`): `spin` never gives the core away. `adaptive` yields the core for a moment, then
// sleeps until a doorbell or a watched descriptor wakes it, or the next event is near. Only sleep
// hands the core over for certain. The kernel's groups (cgroups, autogroups) divide it between
// groups, and a yield passes it on within the thread's own. A poller that stays runnable also makes
// its core look taken: trainers crowd on the other cores.
//
// Stalls. When the scheduler takes the core away, attended time stands still: it advances at most
// one millisecond per iteration. Engine timers measure how long a neighbour was silent while this
// poller ran; time during which it was descheduled does not count. Emulated wires run on the
// clock's time: they do not wait for the poller.
//
// Urgent. An iteration takes as long as all that moves in it, and what goes forth and back between
// pollables takes an iteration each time. While one of them says that something urgent is under way
// (urgency.h), the poller looks for that alone in between, at all of them: each time that as much
// has moved as there are pollables.
//
// Threads: run() and iterate() on the lcore's thread. The control thread changes what the poller or
// its pollables hold only through call(), which runs a function between two iterations and waits
// for it. Once has_ended() has returned true, everything belongs to the control thread again.
// stop() and doorbell() are for any thread.
//
// A poller that never serves a call (its thread hangs, or never gets its core) cannot be given up:
// its engines still use the memory that the caller is about to free, and a job that is halted on
// some engines only would stay so. So call() has a deadline, and past it the whole process ends
// with a message (_exit(), no destructors). The kernel then closes all sessions, and the trainers
// get GRADCUBE_ENODAEMON. The deadline counts only time in which the calling thread ran: a process
// that was stopped or suspended as a whole goes on where it stood.
#ifndef GRADCUBE_DATAPLANE_HOST_POLLER_H_
#define GRADCUBE_DATAPLANE_HOST_POLLER_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/doorbell.h"
#include "dataplane/host/pollable.h"
#include "dataplane/host/relaxed_counter.h"
#include "dataplane/host/urgency.h"

namespace gradcube::dataplane {

class Poller {
 public:
  // Which time a pollable lives in (see Stalls above).
  enum class TimeBase : std::uint8_t { clock, attended };

  static constexpr Nanoseconds kCallPatience = 60'000'000'000;
  static constexpr Nanoseconds kLongestSleep = 100'000'000;
  // Below this the switch to sleep costs more than it gives back.
  static constexpr Nanoseconds kShortestSleep = 50'000;
  static constexpr int kStuckExitCode = 70;

  // The clock's now() is read by run()'s thread and by those that call(). call_patience: how long
  // a call may wait for run()'s thread. longest_sleep: a limit for what no doorbell announces.
  Poller(Clock& clock, control::Idle idle, Nanoseconds call_patience = kCallPatience,
         Nanoseconds longest_sleep = kLongestSleep);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Before run(), or through call(). The poller does not own what it polls. Pollables of the
  // clock's time are polled before those of attended time.
  void add(Pollable& pollable, TimeBase time);
  // Polls it no more; it may then be destroyed. Before run(), or through call(). Does nothing for
  // one that was not added.
  void remove(Pollable& pollable);

  // Wakes from sleep when `descriptor` becomes readable (edge-triggered: one whose other end has
  // closed wakes the poller once). Before run(), or through call(). Throws std::system_error.
  void watch(int descriptor);
  void unwatch(int descriptor);

  Doorbell& doorbell() { return doorbell_; }
  // For what it polls.
  Urgency& urgency() { return urgency_; }

  // Iterates until stop(). Call announce_run() before starting the thread of run(): from then on
  // call() waits for that thread.
  void announce_run();
  void run();
  // For rte_eal_remote_launch(): run() of the Poller at this address.
  static int run_at(void* poller);
  void stop();
  // After stop(): waits until run() has returned. If it does not within the patience of call(), the
  // process ends as it does there.
  void await_end();
  // Whether run() has returned. What its thread did is then visible to the caller (an acquire load
  // of what run() released last): DPDK's own join of an lcore is invisible to race detectors.
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }

  // One iteration of the loop; returns what it moved, 0 when idle.
  unsigned iterate();

  // The earliest time, of the clock, at which something happens by itself here; kNever if nothing
  // does. At once, and earlier than now, if something is due that could not be done. What others
  // bring (frames, submissions, calls) is not foretold. On the lcore's thread: run() bounds its
  // sleep by it, and a virtual clock may jump to the least of all pollers.
  Nanoseconds next_event() const;

  // The parts of a sleep, for run() and for who iterates without it. The first tells everyone who
  // may bring work to ring; one iteration has to follow, which sees what came before they knew.
  // The last takes it back: before anything else is iterated.
  void prepare_wait();
  // Whether somebody has rung; false if nobody does in this time. A ring is told once.
  bool wait_for_ring(Nanoseconds most);
  void finish_wait();

  // What a call begins with where no thread is in run(): a simulation's pollers go on
  // meanwhile, as their threads would.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // Runs `function` on the poller's thread between two iterations and returns when it is done; runs
  // it on this thread when run() is not running, or ends before it has served the call. One caller
  // at a time. Throws what `function` throws. Ends the process after call_patience (see above).
  void call(const std::function<void()>& function);

  // Iterations that took longer than a millisecond: the core was taken away, or a burst was very
  // long.
  std::uint64_t stalls() const { return stalls_.value(); }

 private:
  Nanoseconds read_clock();
  unsigned poll_urgent(Nanoseconds now);
  void add_to_epoll(int descriptor, std::uint32_t events);
  void idle(Nanoseconds now);
  void sleep(Nanoseconds now);
  void serve_call();
  void wait_until(const std::function<bool()>& done);

  Clock& clock_;
  control::Idle idle_mode_;
  Nanoseconds call_patience_;
  Nanoseconds longest_sleep_;
  Doorbell doorbell_;
  int epoll_ = -1;
  std::vector<Pollable*> clocked_;
  std::vector<Pollable*> attended_;
  std::atomic<bool> running_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> stop_{false};
  std::atomic<const std::function<void()>*> requested_{nullptr};
  std::atomic<std::uint64_t> served_{0};
  std::function<void()> meanwhile_;
  std::exception_ptr failure_;  // of the call that was served last; published by served_
  Nanoseconds idle_since_ = 0;
  Nanoseconds last_read_ = 0;  // of the clock
  Nanoseconds stalled_ = 0;
  RelaxedCounter stalls_;
  Urgency urgency_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_POLLER_H_
