// The bucket in front of a packet port, in virtual time: alone, and in a port.
#include "dataplane/fabric/pacer.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/packet_port_fixture.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kGigabit = 1'000'000'000;
constexpr std::uint32_t kJumbo = 9014 + kWireOverheadBytes;  // 72,304 ns at 1 Gb/s

TEST(Pacer, WithoutARateEverythingPasses) {
  Pacer pacer(0, kJumbo);
  for (int i = 0; i < 1000; ++i) pacer.pass(5, kJumbo);
  EXPECT_TRUE(pacer.may_pass(5));
  EXPECT_GT(pacer.room(5), 1'000'000u);
  EXPECT_EQ(pacer.next_room(5), kNever);
}

TEST(Pacer, LetsTwoFullFramesPassWhereTheyTakeLongerThanTheBurst) {
  Pacer pacer(kGigabit, kJumbo);
  Nanoseconds now = 1'000'000;
  EXPECT_EQ(pacer.room(now), 2u);
  pacer.pass(now, kJumbo);
  EXPECT_EQ(pacer.room(now), 1u);
  EXPECT_EQ(pacer.next_room(now), kNever);
  pacer.pass(now, kJumbo);
  EXPECT_EQ(pacer.room(now), 0u);
  EXPECT_EQ(pacer.next_room(now), now + 72'304);
  now += 72'303;
  EXPECT_FALSE(pacer.may_pass(now));
  ++now;
  EXPECT_EQ(pacer.room(now), 1u);
  now += 72'304;
  EXPECT_EQ(pacer.room(now), 2u);
  now += 1'000'000'000;
  EXPECT_EQ(pacer.room(now), 2u) << "a long rest gives no more than the burst";
}

TEST(Pacer, LetsTheBurstPassWhereItIsMoreThanTwoFrames) {
  // 1,250,000 bytes in the burst.
  Pacer pacer(100 * kGigabit, kJumbo);
  std::uint64_t bytes = 0;
  while (pacer.may_pass(1'000)) {
    pacer.pass(1'000, kJumbo);
    bytes += kJumbo;
  }
  EXPECT_LE(bytes, 1'250'000u);
  EXPECT_GT(bytes, 1'250'000u - 2 * kJumbo);
}

TEST(Pacer, InAnyTimeLetsNoMorePassThanTheRateAndTheBurst) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (const std::uint64_t rate : {1'000'000ULL, 333'333'333ULL, 10'000'000'000ULL}) {
    Pacer pacer(rate, kJumbo);
    const double burst =
        std::max<double>(2 * kJumbo, static_cast<double>(rate) * Pacer::kBurst / 8e9);
    struct Passed {
      Nanoseconds when;
      std::uint64_t before, after;
    };
    std::vector<Passed> passed;
    std::uint64_t total = 0;
    Nanoseconds now = 0;
    while (passed.size() < 1'000) {
      if (pacer.may_pass(now)) {
        const auto bytes = static_cast<std::uint32_t>(between(84, kJumbo));
        pacer.pass(now, bytes);
        passed.push_back({now, total, total + bytes});
        total += bytes;
      } else {
        ASSERT_GT(pacer.next_room(now), now);
        now = pacer.next_room(now) + (between(0, 9) == 0 ? between(0, 200'000) : 0);
        ASSERT_TRUE(pacer.may_pass(now));
      }
    }
    for (const Passed& first : passed) {
      for (const Passed& last : passed) {
        if (last.when < first.when || last.after <= first.before) continue;
        const double time = static_cast<double>(last.when - first.when + 1);
        ASSERT_LE(static_cast<double>(last.after - first.before),
                  burst + 1 + time * static_cast<double>(rate) / 8e9);
      }
    }
  }
}

TEST(Pacer, UsesTheWholeRateWhenItIsAskedInTime) {
  Pacer pacer(kGigabit, kJumbo);
  std::uint64_t bytes = 0;
  for (Nanoseconds now = 0; now < 1'000'000'000; now += 50'000) {
    for (; pacer.may_pass(now); bytes += kJumbo) pacer.pass(now, kJumbo);
  }
  EXPECT_NEAR(static_cast<double>(bytes), 125'000'000, 2 * kJumbo);
}

using PacedPortTest = PacketPortTest;

TEST_F(PacedPortTest, AcceptsWhatItsRoomSaysAndTellsWhenThereIsMore) {
  const auto from = port("a", {.bits_per_second = kGigabit});
  const auto to = port("b");
  const Frames sent = frames(20, 9014);
  std::size_t accepted = 0;
  const Nanoseconds begin = clock_.now();
  while (accepted < sent.size()) {
    const std::uint16_t room = from->transmit_room(0);
    ASSERT_EQ(room, accepted == 0 ? 2 : 1);
    EXPECT_EQ(from->next_event(0), kNever);
    std::vector<rte_mbuf*> packets;
    for (std::size_t i = 0; i <= room; ++i) packets.push_back(in_one_segment(sent[0]));
    ASSERT_EQ(from->transmit(0, packets.data(), static_cast<std::uint16_t>(room + 1)), room);
    rte_pktmbuf_free(packets.back());
    accepted += room;
    EXPECT_EQ(from->transmit_room(0), 0u);
    EXPECT_EQ(awaited(*to, room).size(), room) << "what is accepted leaves at once";
    EXPECT_EQ(from->next_event(0), begin + static_cast<Nanoseconds>(accepted - 1) * 72'304);
    clock_.advance_to(from->next_event(0));
  }
}

TEST_F(PacedPortTest, ShortFramesTakeTheTimeOfTheWire) {
  const auto from = port("a", {.bits_per_second = kGigabit});
  // 60 bytes on the wire are 84; 100,000 ns less a full frame's time are left before the last one.
  std::vector<rte_mbuf*> packets;
  for (int i = 0; i < 200; ++i) packets.push_back(in_one_segment(frame(82, 0).substr(0, 14)));
  EXPECT_EQ(from->transmit(0, packets.data(), 200), 72'304 / 672 + 1);
  for (std::size_t i = 72'304 / 672 + 1; i < packets.size(); ++i) rte_pktmbuf_free(packets[i]);
}

TEST_F(PacedPortTest, QueuesShareTheRate) {
  const auto from = port("a", {.pools = {&buffers(), &buffers(), &buffers(), &buffers()},
                               .bits_per_second = kGigabit});
  for (std::uint16_t queue = 0; queue < 4; ++queue) {
    ASSERT_EQ(from->transmit_room(queue), 2u);
    ASSERT_TRUE(send(*from, Frames{frame(9014, 0), frame(9014, 1)}, queue));
    EXPECT_EQ(from->transmit_room(queue), 0u);
    EXPECT_EQ(from->next_event(queue), clock_.now() + 4 * 72'304);
  }
}

TEST_F(PacedPortTest, ARateThatIsTooLowIsRefused) {
  EXPECT_THROW(port("a", {.pools = {&buffers(), &buffers()}, .bits_per_second = 1'999'999}),
               control::UsageError);
  EXPECT_EQ(port("a", {.pools = {&buffers(), &buffers()}, .bits_per_second = 2'000'000})->queues(),
            2u);
}

}  // namespace
}  // namespace gradcube::dataplane
