// Pollers, doorbells, calls and session rings on threads, as in the daemon. Meant for a race
// detector above all: everything that two threads share here is shared in the daemon too.

#include <array>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <rte_launch.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "dataplane/daemon/local_cluster.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/engine/hand_over.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/poller.h"
#include "tests/support/admissions.h"

namespace gradcube::dataplane {
namespace {

using control::Idle;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kPatience = std::chrono::seconds(60);

// Takes numbers out of a box that another thread fills. What it keeps is plain memory.
class Collector final : public Pollable {
 public:
  unsigned poll(Nanoseconds) override {
    const unsigned taken = box.exchange(0, std::memory_order_acquire);
    sum += taken;
    ++iterations;
    polls.fetch_add(1, std::memory_order_relaxed);
    return taken;
  }
  Nanoseconds next_event() const override { return kNever; }

  std::atomic<unsigned> box{0};
  std::uint64_t sum = 0;         // the poller's thread
  std::uint64_t iterations = 0;  // the poller's thread
  // How often it was polled: for any thread, to which nothing else becomes visible by it.
  std::atomic<std::uint64_t> polls{0};
};

class RunningPoller {
 public:
  explicit RunningPoller(Poller& poller) : poller_(poller) {
    poller_.announce_run();
    thread_ = std::thread([this] { poller_.run(); });
  }
  ~RunningPoller() {
    poller_.stop();
    thread_.join();
  }
  RunningPoller(const RunningPoller&) = delete;
  RunningPoller& operator=(const RunningPoller&) = delete;

 private:
  Poller& poller_;
  std::thread thread_;
};

TEST(PollerThreads, ADoorbellWakesThePollerForEachThingThatIsBrought) {
  TscClock clock;
  // Sleeps until a doorbell rings, however long that takes: a lost wake-up shows.
  constexpr Nanoseconds kHour = 3'600'000'000'000;
  Poller poller(clock, Idle::adaptive, Poller::kCallPatience, kHour);
  Collector collector;
  poller.add(collector, Poller::TimeBase::attended);
  constexpr unsigned kThings = 500;
  {
    const RunningPoller running(poller);
    for (unsigned i = 0; i < kThings; ++i) {
      collector.box.fetch_add(1, std::memory_order_release);
      poller.doorbell().ring();
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      while (collector.box.load() != 0) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "a wake-up was lost";
        std::this_thread::yield();
      }
      if (i % 100 == 0) std::this_thread::sleep_for(milliseconds(2));  // it falls asleep
    }
  }
  EXPECT_TRUE(poller.has_ended());
  EXPECT_EQ(collector.sum, kThings);
}

TEST(PollerThreads, CallsRunBetweenIterations) {
  TscClock clock;
  Poller poller(clock, Idle::adaptive);
  Collector collector;
  poller.add(collector, Poller::TimeBase::attended);
  const RunningPoller running(poller);
  std::uint64_t last = 0;
  for (unsigned i = 0; i < 1'000; ++i) {
    std::uint64_t seen = 0;
    poller.call([&] {
      seen = collector.iterations;  // plain memory of both threads
      collector.sum += 1;
    });
    ASSERT_GE(seen, last);
    last = seen;
  }
  std::uint64_t sum = 0;
  poller.call([&] { sum = collector.sum; });
  EXPECT_EQ(sum, 1'000u);
  EXPECT_THROW(poller.call([] { throw std::runtime_error("its own"); }), std::runtime_error);
}

TEST(PollerThreads, ACallThatMeetsTheEndOfTheRunIsServedAllTheSame) {
  TscClock clock;
  for (unsigned i = 0; i < 300; ++i) {
    Poller poller(clock, Idle::spin);
    const RunningPoller running(poller);
    std::thread stopper([&] { poller.stop(); });
    unsigned served = 0;
    for (unsigned call = 0; call < 5; ++call) poller.call([&] { ++served; });
    stopper.join();
    ASSERT_EQ(served, 5u);
  }
}

TEST(PollerThreads, StartAndStopAgainAndAgain) {
  TscClock clock;
  for (unsigned i = 0; i < 50; ++i) {
    Poller poller(clock, i % 2 == 0 ? Idle::adaptive : Idle::spin);
    Collector collector;
    poller.add(collector, Poller::TimeBase::attended);
    {
      const RunningPoller running(poller);
      if (i % 3 == 0) poller.call([&] { collector.sum = 1; });
    }
    poller.call([&] { collector.sum += 1; });  // on this thread: nobody runs
    EXPECT_EQ(collector.sum, i % 3 == 0 ? 2u : 1u);
  }
}

// DPDK is not built with a race detector, which therefore does not see that it joins a thread.
TEST(PollerThreads, WhatAPollerDidIsVisibleOnceItHasEnded) {
  TscClock clock;
  Collector collector;
  Poller poller(clock, Idle::adaptive);
  poller.add(collector, Poller::TimeBase::attended);
  poller.announce_run();
  const auto run = [](void* on) {
    static_cast<Poller*>(on)->run();
    return 0;
  };
  ASSERT_EQ(rte_eal_remote_launch(run, &poller, 1), 0);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (collector.polls.load(std::memory_order_relaxed) == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  poller.stop();
  ASSERT_EQ(rte_eal_wait_lcore(1), 0);
  ASSERT_TRUE(poller.has_ended());
  EXPECT_GT(collector.iterations, 0u);
}

// A process that is stopped for an hour and goes on.
class ClockWithAGap final : public Clock {
 public:
  std::int64_t now() override {
    const std::int64_t time =
        std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    return looks_.fetch_add(1) == 0 ? time : time + 3'600'000'000'000;
  }

 private:
  std::atomic<unsigned> looks_{0};
};

TEST(PollerThreads, ACallDoesNotCountTimeInWhichItsCallerDidNotRun) {
  ClockWithAGap clock;
  Poller poller(clock, Idle::adaptive, 10'000'000'000);
  poller.announce_run();
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(20));
    poller.run();
  });
  bool called = false;
  poller.call([&] { called = true; });
  EXPECT_TRUE(called);
  poller.stop();
  late.join();
}

// Takes frames that another thread hands over. What it keeps is plain memory.
class HandedFrames final : public Pollable {
 public:
  explicit HandedFrames(HandOver& hand_over) : hand_over_(hand_over) {}
  unsigned poll(Nanoseconds) override {
    rte_mbuf* frames[HandOver::kBurst];
    const std::uint16_t count = hand_over_.take(0, 1, frames, HandOver::kBurst);
    for (std::uint16_t i = 0; i < count; ++i) {
      in_order = in_order && *rte_pktmbuf_mtod(frames[i], std::uint32_t*) >= next;
      next = *rte_pktmbuf_mtod(frames[i], std::uint32_t*) + 1;
      rte_pktmbuf_free(frames[i]);
    }
    taken.fetch_add(count);
    return count;
  }
  Nanoseconds next_event() const override { return kNever; }

  std::atomic<unsigned> taken{0};
  bool in_order = true;    // the poller's thread
  std::uint32_t next = 0;  // the poller's thread

 private:
  HandOver& hand_over_;
};

TEST(PollerThreads, FramesThatAreHandedOverWakeTheirPollerAndEachComesOnce) {
  TscClock clock;
  constexpr Nanoseconds kHour = 3'600'000'000'000;
  // A race detector does not see that a packet of DPDK's pool, a ring, is freed before it is taken
  // anew. So there are more than are handed over between two waits for all of them.
  constexpr unsigned kBurstsAtOnce = 20;
  PacketPool pool({.name = "handed", .count = 1023, .cache = 0});
  Poller poller(clock, Idle::adaptive, Poller::kCallPatience, kHour);
  Doorbell own;
  HandOver hand_over({&own, &poller.doorbell()});
  HandedFrames receiver(hand_over);
  poller.add(receiver, Poller::TimeBase::attended);
  unsigned passed = 0;
  {
    const RunningPoller running(poller);
    std::uint32_t number = 0;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (unsigned burst = 0; burst < 2'000; ++burst) {
      for (unsigned i = 0; i < 1 + burst % HandOver::kBurst; ++i) {
        rte_mbuf* frame = pool.allocate();
        ASSERT_NE(frame, nullptr);
        *reinterpret_cast<std::uint32_t*>(rte_pktmbuf_append(frame, 4)) = number++;
        hand_over.put(0, 1, frame);
      }
      passed += hand_over.flush(0).passed;
      if (burst % kBurstsAtOnce != 0) continue;
      while (receiver.taken.load() != passed) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "a wake-up was lost";
        std::this_thread::yield();
      }
      // It falls asleep.
      if (burst % (5 * kBurstsAtOnce) == 0) std::this_thread::sleep_for(milliseconds(2));
    }
    while (receiver.taken.load() != passed) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "a wake-up was lost";
      std::this_thread::yield();
    }
  }
  EXPECT_GT(passed, 2'000u);
  EXPECT_TRUE(receiver.in_order);
  EXPECT_EQ(pool.in_use(), 0u);
}

// A trainer's side of a session, on the daemon's own mapping of it, so that a race detector sees
// both sides at the same addresses.
class Trainer {
 public:
  Trainer(std::uint8_t* base, const JoinedSession& session)
      : base_(base), doorbell_(session.trainer_doorbell) {}

  // Sums `count` floats over the job again and again. Returns how many results were wrong.
  unsigned work(unsigned rounds, std::uint64_t count, float rank, float expected) {
    unsigned wrong = 0;
    auto* values = reinterpret_cast<float*>(base_ + shared::kHeapOffset);
    for (unsigned i = 0; i < rounds; ++i) {
      for (std::uint64_t j = 0; j < count; ++j) values[j] = rank;
      submit(count);
      if (wait_for_completion() != 0 || values[0] != expected || values[count - 1] != expected) {
        ++wrong;
      }
    }
    return wrong;
  }

 private:
  shared::RegionHeader& header() { return *reinterpret_cast<shared::RegionHeader*>(base_); }

  void submit(std::uint64_t count) {
    auto* ring = reinterpret_cast<shared::Submission*>(base_ + shared::kSubmissions);
    shared::Submission submission{};
    submission.request = submitted_ + 1;
    submission.offset = shared::kHeapOffset;
    submission.count = count;
    ring[submitted_ % shared::kSubmissionEntries] = submission;
    ++submitted_;
    header().submission_tail.store(submitted_);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (header().daemon_asleep.load() == 0) return;
    const char bell = 0;
    (void)!send(doorbell_, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  std::int32_t wait_for_completion() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    header().trainer_asleep.store(1);
    while (header().completion_tail.load() != submitted_) {
      if (std::chrono::steady_clock::now() > deadline) return -1;
      pollfd bell{doorbell_, POLLIN, 0};
      std::array<char, 64> bytes{};
      if (poll(&bell, 1, 10) == 1) (void)!recv(doorbell_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    }
    header().trainer_asleep.store(0);
    const auto* ring = reinterpret_cast<const shared::Completion*>(base_ + shared::kCompletions);
    const std::int32_t code = ring[(submitted_ - 1) % shared::kRingEntries].code;
    header().completion_head.store(submitted_);
    return code;
  }

  std::uint8_t* base_;
  int doorbell_;
  std::uint64_t submitted_ = 0;
};

control::ClusterSettings settings() {
  control::ClusterSettings settings;
  control::apply_setting(settings, "topology", "bcube:2,2", "--topology");
  control::apply_setting(settings, "mtu", "1500", "--mtu");
  return settings;
}

TEST(PollerThreads, TrainersReduceOverEnginesOnTwoThreadsWhileTheControlThreadLooks) {
  constexpr unsigned kServers = 4;
  constexpr unsigned kRounds = 20;
  constexpr std::uint64_t kCount = 2'000;
  TscClock clock;
  EventQueue events;
  LocalClusterOptions options;
  options.settings = settings();
  options.lcores = {{1, -1}, {2, -1}};
  LocalCluster cluster(options, clock, aggregation::select_kernels(0), events);
  NodeGroup& nodes = cluster.nodes();
  Admissions admissions(nodes);
  {
    std::vector<std::unique_ptr<RunningPoller>> running;
    for (const auto& poller : cluster.pollers()) {
      running.push_back(std::make_unique<RunningPoller>(*poller));
    }
    for (unsigned generation = 0; generation < 3; ++generation) {
      const std::vector<TrainerId> ids = admissions.join_all({"job", 1, 1, 1 << 20});
      std::vector<std::thread> trainers;
      std::atomic<unsigned> wrong{0};
      std::atomic<unsigned> done{0};
      for (unsigned rank = 0; rank < kServers; ++rank) {
        Trainer trainer(admissions.memory(ids[rank]), admissions.session(ids[rank]));
        trainers.emplace_back([&, rank, trainer]() mutable {
          wrong += trainer.work(kRounds, kCount, static_cast<float>(rank), 0 + 1 + 2 + 3);
          ++done;
        });
      }
      while (done.load() < kServers) {
        nodes.jobs(admissions.now());
        events.take([&](const EngineEvent& event) { nodes.handle(event, admissions.now()); });
        for (const auto& poller : cluster.pollers()) poller->call([] {});
        nodes.run(admissions.now());
        nodes.look(admissions.now());
        std::this_thread::sleep_for(milliseconds(1));
      }
      for (std::thread& trainer : trainers) trainer.join();
      EXPECT_EQ(wrong.load(), 0u);
      EXPECT_EQ(nodes.jobs(admissions.now()).at(0).collectives, kRounds);
      // The last generation stays: the cluster's end takes it down.
      if (generation == 2) continue;
      for (const TrainerId id : ids) {
        nodes.at(id.server).leave(id, generation == 0 ? Departure::orderly : Departure::death,
                                  "died", admissions.now());
      }
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      while (!nodes.idle() && std::chrono::steady_clock::now() < deadline) {
        events.take([&](const EngineEvent& event) { nodes.handle(event, admissions.now()); });
        nodes.run(admissions.now());
        nodes.look(admissions.now());
      }
      EXPECT_TRUE(nodes.jobs(admissions.now()).empty());
      EXPECT_TRUE(nodes.idle());
    }
  }
  for (const auto& poller : cluster.pollers()) EXPECT_TRUE(poller->has_ended());
}

}  // namespace
}  // namespace gradcube::dataplane
