#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataplane/fabric/emulated/random.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/doorbell.h"
#include "dataplane/host/eal.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/packet_ring.h"
#include "tests/unit/control/message.h"
#include "tests/unit/dataplane/packets_in_use.h"
#include "tests/unit/dataplane/wait_until_rung.h"

namespace gradcube::dataplane {
namespace {

std::string message_of(const EalOptions& options) {
  return control::message_of<std::runtime_error>([&] { const Eal eal(options); });
}

int report_cpus(void* set) {
  return sched_getaffinity(0, sizeof(cpu_set_t), static_cast<cpu_set_t*>(set));
}

TEST(Eal, TheMainThreadFloatsAndAWorkerIsPinned) {
  cpu_set_t main_cpus;
  ASSERT_EQ(report_cpus(&main_cpus), 0);
  EXPECT_EQ(static_cast<std::size_t>(CPU_COUNT(&main_cpus)), usable_cores().size());
  cpu_set_t worker_cpus;
  ASSERT_EQ(rte_eal_remote_launch(report_cpus, &worker_cpus, 1), 0);
  ASSERT_EQ(rte_eal_wait_lcore(1), 0);
  EXPECT_EQ(CPU_COUNT(&worker_cpus), 1);
  EXPECT_TRUE(CPU_ISSET(usable_cores().front(), &worker_cpus));
  EXPECT_EQ(rte_get_main_lcore(), 0u);
}

TEST(Eal, SaysWhatIsWrongWithItsOptions) {
  EalOptions options;
  EXPECT_NE(message_of(options).find("no core"), std::string::npos);
  options.cores = {100'000};
  EXPECT_NE(message_of(options).find("CPU 100000"), std::string::npos);
}

// DPDK itself would abort where it has its memory and gets no threads beside it.
TEST(Eal, SaysThatItCannotHaveItsMemory) {
  EalOptions options;
  options.cores = {usable_cores().front()};
  options.huge_pages = HugePages::never;
  options.memory_megabytes = 1 << 28;  // more than there are addresses
  EXPECT_NE(message_of(options).find("ulimit -v"), std::string::npos);
}

TEST(Eal, SaysThatItStartsOnlyOnce) {
  EalOptions options;
  options.cores = {usable_cores().front()};
  options.huge_pages = HugePages::never;
  EXPECT_NE(message_of(options).find("once"), std::string::npos);
}

TEST(PacketPool, CountsWhatIsOut) {
  PacketPoolOptions options;
  options.name = "counted";
  options.count = 1023;
  PacketPool pool(options);
  EXPECT_EQ(packets_in_use(pool), 0u);
  EXPECT_GE(pool.bytes(), 1023u * (kHeaderBytes + RTE_PKTMBUF_HEADROOM));
  rte_mbuf* packets[32];
  ASSERT_TRUE(pool.allocate(packets, 32));
  EXPECT_EQ(packets_in_use(pool), 32u);
  EXPECT_GE(rte_pktmbuf_tailroom(packets[0]), kHeaderBytes);
  rte_pktmbuf_free_bulk(packets, 32);
  EXPECT_EQ(packets_in_use(pool), 0u);
}

TEST(PacketPool, AnEmptyPoolGivesNothing) {
  PacketPoolOptions options;
  options.name = "small";
  options.count = 7;
  PacketPool pool(options);
  rte_mbuf* packets[8];
  EXPECT_FALSE(pool.allocate(packets, 8));
  ASSERT_TRUE(pool.allocate(packets, 7));
  EXPECT_EQ(pool.allocate(), nullptr);
  rte_pktmbuf_free_bulk(packets, 7);
}

TEST(PacketPool, SaysHowMuchWasAskedForWhenMemoryIsShort) {
  PacketPoolOptions options;
  options.name = "huge";
  options.count = 10'000'000;
  options.frame_bytes = 9000;
  EXPECT_THROW(PacketPool{options}, std::runtime_error);
  options.frame_bytes = 70'000;
  EXPECT_THROW(PacketPool{options}, std::runtime_error);
}

// All of DPDK's memory, as long as it lives.
class NoDpdkMemory {
 public:
  NoDpdkMemory() {
    for (std::size_t bytes = 1 << 24; bytes >= RTE_CACHE_LINE_SIZE; bytes /= 2) {
      while (void* taken = rte_malloc(nullptr, bytes, 0)) taken_.push_back(taken);
    }
  }
  ~NoDpdkMemory() {
    for (void* taken : taken_) rte_free(taken);
  }

 private:
  std::vector<void*> taken_;
};

TEST(PacketPool, KeepsItsPacketsWhereDpdkHasNoMemoryForMore) {
  PacketPoolOptions options;
  options.name = "growing";
  options.count = 1023;
  options.at_start = 1;
  PacketPool pool(options);
  const std::uint32_t made = pool.made();
  ASSERT_LT(made, options.count);
  rte_mbuf* packet = pool.allocate();
  PacketPool::Chunk chunk = pool.make_chunk(options.count - made);
  {
    const NoDpdkMemory none;
    EXPECT_THROW(pool.add(std::move(chunk)), std::runtime_error);
  }
  EXPECT_EQ(pool.made(), made);
  EXPECT_EQ(packets_in_use(pool), 1U);
  EXPECT_EQ(rte_mempool_from_obj(packet), pool.get()) << "it is still the pool's";
  rte_pktmbuf_free(packet);
  while (pool.made() < options.count) pool.add(pool.make_chunk(options.count - pool.made()));
  std::vector<rte_mbuf*> all(options.count);
  EXPECT_TRUE(pool.allocate(all.data(), static_cast<std::uint16_t>(options.count)));
  rte_pktmbuf_free_bulk(all.data(), options.count);
}

TEST(PacketRing, HoldsExactlyItsDepthAndFreesWhatIsLeft) {
  PacketPoolOptions options;
  options.name = "ringed";
  options.count = 127;
  PacketPool pool(options);
  for (const std::uint32_t depth : {1U, 16U, 100U}) {
    PacketRing ring(depth);
    std::uint32_t held = 0;
    for (;; ++held) {
      rte_mbuf* packet = pool.allocate();
      if (ring.put(&packet, 1) == 1) continue;
      rte_pktmbuf_free(packet);
      break;
    }
    EXPECT_EQ(held, depth);
    EXPECT_EQ(ring.used(), depth);
    EXPECT_EQ(ring.room(), 0u);
  }
  EXPECT_EQ(packets_in_use(pool), 0u);
  EXPECT_THROW(PacketRing(0), std::runtime_error);
}

TEST(TscClock, GoesForwardInNanoseconds) {
  // Between two looks at the system's clock each, as the core may be taken away at any moment.
  const auto real = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  TscClock clock;
  const std::chrono::nanoseconds before = real();
  const std::int64_t first = clock.now();
  const std::chrono::nanoseconds begin = real();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::chrono::nanoseconds end = real();
  const std::int64_t elapsed = clock.now() - first;
  const std::chrono::nanoseconds after = real();
  EXPECT_GE(first, 0);
  EXPECT_GT(static_cast<double>(elapsed), 0.8 * static_cast<double>((end - begin).count()));
  EXPECT_LT(static_cast<double>(elapsed), 1.2 * static_cast<double>((after - before).count()));
}

TEST(VirtualClock, MovesOnlyForward) {
  VirtualClock clock(100);
  clock.advance(5);
  clock.advance_to(50);
  EXPECT_EQ(clock.now(), 105);
  clock.advance_to(200);
  EXPECT_EQ(clock.now(), 200);
}

TEST(SeededRandom, StaysBelowItsBoundAndReachesAllOfIt) {
  SeededRandom random(42);
  int seen[10] = {};
  for (int i = 0; i < 10'000; ++i) ++seen[random.below(10)];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(SeededRandom(7).next(), SeededRandom(7).next());
}

TEST(Doorbell, WakesNobodyWhoIsAwake) {
  Doorbell bell;
  bell.ring();
  EXPECT_FALSE(bell.finish_wait());
  bell.prepare_wait();
  bell.ring();
  wait_until_rung(bell);
  EXPECT_TRUE(bell.finish_wait());
  EXPECT_FALSE(bell.finish_wait());
}

TEST(Doorbell, NoWorkIsLeftBeforeASleeper) {
  Doorbell bell;
  std::atomic<int> given{0};
  constexpr int kRounds = 20'000;
  std::thread producer([&] {
    for (int i = 0; i < kRounds; ++i) {
      given.fetch_add(1, std::memory_order_relaxed);
      bell.ring();
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  int taken = 0;
  while (taken < kRounds) {
    const int now_there = given.load(std::memory_order_relaxed);
    if (now_there != taken) {
      taken = now_there;
      continue;
    }
    bell.prepare_wait();
    // Without a limit: a lost wake-up hangs the test.
    if (given.load(std::memory_order_relaxed) == taken) wait_until_rung(bell);
    bell.finish_wait();
  }
  producer.join();
  EXPECT_EQ(taken, kRounds);
}

}  // namespace
}  // namespace gradcube::dataplane
