#include <cmath>
#include <gtest/gtest.h>

#include "dataplane/fabric/emulated/link.h"
#include "dataplane/fabric/link_clock.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/switch_fixture.h"

namespace gradcube::dataplane {
namespace {

class SwitchLinkTest : public SwitchTest {
 protected:
  static std::int64_t wire_time(std::uint32_t bytes, std::uint64_t rate) {
    return static_cast<std::int64_t>(
        std::llround((std::max(bytes, 60U) + 24) * 8.0 * 1e9 / static_cast<double>(rate)));
  }
  static EmulatedSwitchOptions with_rate(std::uint64_t rate) {
    EmulatedSwitchOptions options;
    options.profile.bits_per_second = rate;
    return options;
  }
  void send_express(std::uint16_t from, const FrameSpec& spec) {
    rte_mbuf* packet = frame(spec);
    ASSERT_NE(packet, nullptr);
    if (ports_[from]->transmit(ports_[from]->express_queue(0), &packet, 1) == 0) {
      rte_pktmbuf_free(packet);
    }
  }
  void free_received(std::uint16_t server) { received_numbers(server); }
};

TEST_F(SwitchLinkTest, PassesTheExpressLaneAloneWhereOnlyThatIsUrgent) {
  build(2, {});
  ASSERT_TRUE(send(0, {.to = 1, .number = 1}));
  send_express(0, {.to = 1, .number = 2});
  poll();
  EXPECT_EQ(received_numbers(1, ports_[1]->express_queue(0)), std::vector{2U});
  EXPECT_EQ(received_numbers(1), std::vector{1U});
  ASSERT_TRUE(send(0, {.to = 1, .number = 3}));
  send_express(0, {.to = 1, .number = 4});
  EXPECT_EQ(switch_->shard(0).poll_urgent(clock_.now()), 1u);
  EXPECT_EQ(received_numbers(1), std::vector{4U});
  poll();
  EXPECT_EQ(received_numbers(1), std::vector{3U});
}

TEST(LinkClock, TakesExactlyAsLongAsTheBytesOfALongRun) {
  for (const std::uint64_t rate : {1'000'000ULL, 10'000'000'000ULL, 100'000'000'000ULL,
                                   400'000'000'000ULL, 3'333'333'333ULL}) {
    LinkClock wire(rate);
    std::int64_t end = 0;
    for (int i = 0; i < 1'000'000; ++i) end = wire.carry(0, 84);
    const double exact = 1e6 * 84 * 8 * 1e9 / static_cast<double>(rate);
    EXPECT_NEAR(static_cast<double>(end), exact, exact * 1e-8 + 1.0) << rate;
  }
}

TEST_F(SwitchLinkTest, NPacketsTakeNTimesTheirWireTime) {
  constexpr std::uint64_t kRate = 10'000'000'000;
  for (const std::uint32_t bytes : {64U, 1514U}) {
    build(2, with_rate(kRate));
    poll();
    const std::int64_t start = clock_.now();
    constexpr int kFrames = 1000;
    for (int i = 0; i < kFrames; ++i) ASSERT_TRUE(send(0, {.to = 1, .bytes = bytes}));
    int got = 0;
    std::int64_t last = 0;
    run_until_quiet([&] {
      const std::size_t now_here = received_numbers(1).size();
      if (now_here != 0) last = clock_.now();
      got += static_cast<int>(now_here);
    });
    EXPECT_EQ(got, kFrames);
    // Store and forward: the last frame is one wire time behind the end of the sender's wire.
    const double exact = (kFrames + 1) * (bytes + 24) * 8.0 * 1e9 / kRate;
    EXPECT_NEAR(static_cast<double>(last - start), exact,
                static_cast<double>(wire_time(bytes, kRate)));
  }
}

TEST_F(SwitchLinkTest, IrregularPollingCostsNoCapacity) {
  constexpr std::uint64_t kRate = 10'000'000'000;
  RingPortOptions deep;
  deep.uplink_depth = 512;
  build(2, with_rate(kRate), deep);
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "GRADCUBE_TEST_SEED=" << seed);
  SeededRandom random(seed);
  poll();
  const std::int64_t start = clock_.now();
  std::uint64_t got = 0;
  while (clock_.now() < start + 20'000'000) {
    // The sender keeps its ring from running dry; the poller comes by every 0 to 100 us.
    while (send(0, {.to = 1, .bytes = 1514})) {
    }
    clock_.advance(static_cast<std::int64_t>(random.below(100'000)));
    while (poll() != 0) {
    }
    got += received_numbers(1).size();
  }
  const double elapsed = static_cast<double>(clock_.now() - start);
  const double exact = elapsed * kRate / 1e9 / (1538 * 8);
  EXPECT_NEAR(static_cast<double>(got), exact, 2.5);
}

TEST_F(SwitchLinkTest, AnIdleWireSavesUpNoCapacity) {
  constexpr std::uint64_t kRate = 1'000'000'000;
  build(2, with_rate(kRate));
  poll();
  clock_.advance(50'000'000);
  poll();
  const std::int64_t start = clock_.now();
  for (int i = 0; i < 10; ++i) send(0, {.to = 1, .bytes = 1000});
  std::int64_t first = 0;
  run_until_quiet([&] {
    if (!received_numbers(1).empty() && first == 0) first = clock_.now();
  });
  EXPECT_EQ(first - start, 2 * wire_time(1000, kRate));
}

TEST_F(SwitchLinkTest, DelayIsAddedOnceToEveryFrame) {
  EmulatedSwitchOptions options = with_rate(1'000'000'000);
  options.profile.delay = 12'345;
  build(2, options);
  poll();
  const std::int64_t start = clock_.now();
  send(0, {.to = 1, .bytes = 1000});
  std::int64_t arrived = 0;
  run_until_quiet([&] {
    if (!received_numbers(1).empty()) arrived = clock_.now();
  });
  EXPECT_EQ(arrived - start, 2 * wire_time(1000, 1'000'000'000) + 12'345);
}

TEST_F(SwitchLinkTest, DelayWithoutRateHoldsFramesBackAndNothingElse) {
  EmulatedSwitchOptions options;
  options.profile.delay = 5000;
  build(2, options);
  send(0, {.to = 1, .number = 7});
  poll();
  EXPECT_EQ(switch_->shard(0).next_event(), clock_.now() + 5000);
  clock_.advance(4999);
  poll();
  EXPECT_TRUE(received_numbers(1).empty());
  clock_.advance(1);
  poll();
  EXPECT_EQ(received_numbers(1), std::vector<std::uint32_t>{7});
}

TEST_F(SwitchLinkTest, TailDropComesAtTheByteThatDoesNotFit) {
  constexpr std::uint32_t kBytes = 1000;
  EmulatedSwitchOptions options = with_rate(1'000'000'000);
  options.profile.queue_bytes = 4 * kBytes;
  for (const int excess : {0, 1}) {
    // Eight senders' frames arrive at the same moment at one output: one byte less of room is one
    // frame less that fits.
    options.profile.queue_bytes = static_cast<std::uint64_t>(4 * kBytes - excess);
    build(9, options);
    poll();
    for (std::uint16_t from = 1; from < 9; ++from) {
      send(from, {.to = 0, .bytes = kBytes, .number = from});
    }
    std::size_t got = 0;
    run_until_quiet([&] { got += received_numbers(0).size(); });
    EXPECT_EQ(got, 4u - excess);
    EXPECT_EQ(switch_->counts(0).dropped_queue, 4u + excess);
    EXPECT_EQ(switch_->counts(0).queue_peak_bytes, kBytes * (4 - excess));
  }
}

TEST_F(SwitchLinkTest, AQueueEmptiesAtTheRateOfItsWire) {
  constexpr std::uint32_t kBytes = 1000;
  EmulatedSwitchOptions options = with_rate(1'000'000'000);
  options.profile.queue_bytes = 2 * kBytes;
  build(3, options);
  poll();
  // Two senders at full rate into one output: it sends half of what comes, and never more than
  // fits.
  for (int i = 0; i < 200; ++i) {
    send(1, {.to = 0, .bytes = kBytes});
    send(2, {.to = 0, .bytes = kBytes});
  }
  std::size_t got = 0;
  run_until_quiet([&] { got += received_numbers(0).size(); });
  EXPECT_NEAR(static_cast<double>(got), 201.0, 1.0);
  EXPECT_EQ(got + switch_->counts(0).dropped_queue, 400u);
}

TEST_F(SwitchLinkTest, AQueueIsAsLongAsItReallyIsWhenThePollerCatchesUp) {
  // Senders that take turns never build a queue; a late poll must not invent one.
  constexpr std::uint32_t kBytes = 1000;
  EmulatedSwitchOptions options = with_rate(1'000'000'000);
  options.profile.queue_bytes = 2 * kBytes;
  build(3, options);
  poll();
  for (int i = 0; i < 16; ++i) {
    send(1, {.to = static_cast<std::uint64_t>(i % 2 == 0 ? 0 : 2), .bytes = kBytes});
    send(2, {.to = static_cast<std::uint64_t>(i % 2 == 0 ? 1 : 0), .bytes = kBytes});
  }
  clock_.advance(10'000'000);
  while (poll() != 0) {
  }
  EXPECT_EQ(switch_->counts(0).dropped_queue, 0u);
  EXPECT_EQ(received_numbers(0).size(), 16u);
  EXPECT_EQ(received_numbers(1).size() + received_numbers(2).size(), 16u);
}

TEST_F(SwitchLinkTest, FramesAboveTheThresholdAreMarkedAndTheirChecksumHolds) {
  constexpr std::uint32_t kBytes = 1000;
  EmulatedSwitchOptions options = with_rate(1'000'000'000);
  options.profile.mark_bytes = 3 * kBytes;
  build(9, options);
  poll();
  for (std::uint16_t from = 1; from < 9; ++from) {
    send(from, {.to = 0, .bytes = kBytes, .ecn = static_cast<std::uint8_t>(1 + from % 2)});
  }
  int marked = 0;
  int all = 0;
  run_until_quiet([&] {
    for (rte_mbuf* packet : received(0)) {
      EXPECT_TRUE(ipv4_checksum_fits(packet));
      if ((field16(packet, 14) & 3) == 3) ++marked;
      ++all;
      rte_pktmbuf_free(packet);
    }
  });
  EXPECT_EQ(all, 8);
  EXPECT_EQ(marked, 5);
  EXPECT_EQ(switch_->counts(0).marked, 5u);
}

TEST_F(SwitchLinkTest, ATransportThatDoesNotKnowMarksIsNotMarked) {
  EmulatedSwitchOptions options = with_rate(1'000'000'000);
  options.profile.mark_bytes = 1;
  build(2, options);
  poll();
  send(0, {.to = 1, .bytes = 1000, .ecn = 0});
  run_until_quiet([&] {
    for (rte_mbuf* packet : received(1)) {
      EXPECT_EQ(field16(packet, 14) & 3, 0);
      rte_pktmbuf_free(packet);
    }
  });
  EXPECT_EQ(switch_->counts(1).marked, 0u);
}

TEST_F(SwitchLinkTest, AMarkIsWrittenIntoACopyWhenTheHeaderHasAnotherOwner) {
  EmulatedSwitchOptions options = with_rate(1'000'000'000);
  options.profile.mark_bytes = 1;
  build(2, options);
  poll();
  rte_mbuf* packet = frame({.to = 1, .bytes = 1000});
  const std::string before = bytes_of(packet);
  rte_mbuf_refcnt_update(packet, 1);
  rte_mbuf* sent = packet;
  ASSERT_EQ(ports_[0]->transmit(0, &sent, 1), 1);
  run_until_quiet([&] {
    for (rte_mbuf* got : received(1)) {
      EXPECT_EQ(field16(got, 14) & 3, 3);
      EXPECT_TRUE(ipv4_checksum_fits(got));
      rte_pktmbuf_free(got);
    }
  });
  EXPECT_EQ(bytes_of(packet), before);
  rte_pktmbuf_free(packet);
}

TEST_F(SwitchLinkTest, ASenderFasterThanItsWireFindsItsRingFull) {
  RingPortOptions shallow;
  shallow.uplink_depth = 16;
  build(2, with_rate(1'000'000'000), shallow);
  poll();
  int accepted = 0;
  while (send(0, {.to = 1, .bytes = 1000})) ++accepted;
  EXPECT_EQ(accepted, 16);
  EXPECT_EQ(ports_[0]->transmit_room(0), 0);
  poll();
  EXPECT_EQ(ports_[0]->transmit_room(0), 1);
  clock_.advance(wire_time(1000, 1'000'000'000));
  poll();
  EXPECT_EQ(ports_[0]->transmit_room(0), 2);
}

TEST_F(SwitchLinkTest, TheQueuesOfAPortShareItsWireFairly) {
  RingPortOptions two_queues;
  two_queues.queues = 2;
  build(2, with_rate(1'000'000'000), two_queues);
  poll();
  for (int i = 0; i < 100; ++i) {
    send(0, {.to = 1, .bytes = 1000, .thread = 0});
    send(0, {.to = 1, .bytes = 1000, .thread = 1});
  }
  const std::int64_t start = clock_.now();
  while (clock_.now() < start + 100 * wire_time(1000, 1'000'000'000)) {
    clock_.advance(500);
    poll();
  }
  const auto first = static_cast<double>(received_numbers(1, 0).size());
  const auto second = static_cast<double>(received_numbers(1, 1).size());
  EXPECT_NEAR(first, 49.5, 1.0);
  EXPECT_NEAR(second, 49.5, 1.0);
}

TEST_F(SwitchLinkTest, AnExpressFrameWaitsForTheFramesOnTheTwoWiresOnly) {
  constexpr std::uint64_t kRate = 1'000'000'000;
  build(3, with_rate(kRate));
  poll();
  // Both senders fill the output queue of server 2 and their own uplinks.
  for (int i = 0; i < 200; ++i) {
    for (const std::uint16_t from : {0, 1}) ASSERT_TRUE(send(from, {.to = 2, .bytes = 1000}));
  }
  clock_.advance(100 * wire_time(1000, kRate));
  poll();
  free_received(2);
  send_express(0, {.to = 2, .bytes = 100, .number = 1});
  const std::int64_t sent_at = clock_.now();
  std::int64_t taken = kNever;
  run_until_quiet([&] {
    for (const std::uint32_t number : received_numbers(2)) {
      if (number == 1) taken = clock_.now() - sent_at;
    }
  });
  EXPECT_LE(taken, 2 * wire_time(1000, kRate) + 2 * wire_time(100, kRate));
}

TEST_F(SwitchLinkTest, TheLanesOfAWireShareItsBytesWhileBothHaveFrames) {
  constexpr std::uint64_t kRate = 1'000'000'000;
  RingPortOptions deep;
  deep.downlink_depth = 4096;
  build(3, with_rate(kRate), deep);
  poll();
  // Each lane's frames come over an uplink of their own, as fast as the wire to server 2 is.
  std::size_t express = 0;
  std::size_t plain = 0;
  const std::int64_t end = clock_.now() + 200 * wire_time(1000, kRate);
  while (clock_.now() < end) {
    send_express(0, {.to = 2, .bytes = 250, .number = 1});
    send(1, {.to = 2, .bytes = 1000, .number = 2});
    poll();
    for (const std::uint32_t number : received_numbers(2)) ++(number == 1 ? express : plain);
    clock_.advance(500);
  }
  EXPECT_NEAR(static_cast<double>(plain), 100, 15);
  EXPECT_GT(express, 3 * plain);
  run_until_quiet([this] { free_received(2); });
}

TEST_F(SwitchLinkTest, WithoutARateAServerReceivesExpressFramesFirst) {
  build(2, {});
  for (std::uint32_t number = 0; number < 5; ++number) send(0, {.to = 1, .number = number});
  send_express(0, {.to = 1, .number = 5});
  run_until_quiet([] {});
  EXPECT_EQ(received_numbers(1), (std::vector<std::uint32_t>{5, 0, 1, 2, 3, 4}));
}

TEST_F(SwitchLinkTest, AServerThatDoesNotReceiveMissesFramesAsBehindANic) {
  RingPortOptions shallow;
  shallow.downlink_depth = 8;
  build(2, with_rate(1'000'000'000), shallow);
  poll();
  for (int i = 0; i < 20; ++i) send(0, {.to = 1, .bytes = 1000});
  run_until_quiet([] {});
  EXPECT_EQ(received_numbers(1).size(), 8u);
  EXPECT_EQ(switch_->counts(1).rx_missed, 12u);
  EXPECT_EQ(switch_->counts(1).forwarded, 8u);
}

}  // namespace
}  // namespace gradcube::dataplane
