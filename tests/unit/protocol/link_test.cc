#include "tests/unit/protocol/link.h"

#include <cstdint>
#include <gtest/gtest.h>

#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

TEST(Link, WithoutLossNothingIsEverSentTwice) {
  for (const Nanoseconds delay : {1 * kMicrosecond, 10 * kMicrosecond, 40 * kMicrosecond}) {
    for (const Nanoseconds per_segment : {100L, 1'200L, 72'000L}) {
      for (const std::uint64_t back : {0ULL, 1ULL, 2'000ULL}) {
        SCOPED_TRACE(testing::Message() << delay << ' ' << per_segment << ' ' << back);
        LinkSettings settings{.delay = delay};
        settings.per_segment = per_segment;
        Link link(settings, 1, 2'000, back);
        ASSERT_TRUE(link.run(10 * kSecond));
        link.expect_all_delivered_once();
        EXPECT_EQ(link.a().send.counters().resent, 0U);
        EXPECT_EQ(link.b().send.counters().resent, 0U);
      }
    }
  }
}

TEST(Link, WithoutLossTheLineStaysFull) {
  Link link({}, 1, 5'000, 0);
  ASSERT_TRUE(link.run(kSecond));
  EXPECT_LE(link.now(), 5'000 * 1'200 * 102 / 100 + 200 * kMicrosecond);
}

TEST(Link, ABudgetOfTwiceTheBandwidthDelayProductKeepsTheLineFull) {
  const CreditSettings credit{.budget_bytes = 36 * 1500, .segment_bytes = 1500};
  for (const std::uint64_t back : {0, 5'000}) {
    Link link({}, 1, 5'000, back, credit);
    ASSERT_TRUE(link.run(kSecond));
    link.expect_all_delivered_once();
    EXPECT_LE(link.now(), 5'000 * 1'200 * 102 / 100 + 200 * kMicrosecond);
    EXPECT_EQ(link.a().send.counters().credit_probes, 0U);
  }
}

TEST(Link, RandomLossIsRepairedWithFewResendsAndLittleTime) {
  for (const double loss : {0.001, 0.01, 0.05}) {
    for (std::uint64_t round = 0; round < 5; ++round) {
      const std::uint64_t seed = test_seed(100 + round);
      SCOPED_TRACE(seed_trace(seed));
      Link link({.loss = loss}, seed, 20'000, 20'000);
      ASSERT_TRUE(link.run(10 * kSecond));
      link.expect_all_delivered_once();
      const auto resent = link.a().send.counters().resent + link.b().send.counters().resent;
      RecordProperty("resent", static_cast<int>(resent));
      RecordProperty("lost", static_cast<int>(link.lost_segments()));
      EXPECT_GE(resent, link.lost_segments());
      EXPECT_LE(static_cast<double>(resent), 1.2 * static_cast<double>(link.lost_segments()) + 2);
      if (loss <= 0.01) {
        EXPECT_LE(link.now(), 20'000 * 1'200 * 11 / 10);
      }
    }
  }
}

TEST(Link, OneWayTrafficWithLossIsRepairedToo) {
  const std::uint64_t seed = test_seed(7);
  SCOPED_TRACE(seed_trace(seed));
  Link link({.loss = 0.01}, seed, 20'000, 0);
  ASSERT_TRUE(link.run(10 * kSecond));
  link.expect_all_delivered_once();
  EXPECT_LE(static_cast<double>(link.a().send.counters().resent),
            1.2 * static_cast<double>(link.lost_segments()) + 2);
}

TEST(Link, ALostTailIsBackWithinAProbeTimeoutAndTwoRoundTrips) {
  for (const std::uint64_t lost : {1, 2, 10, 60}) {
    SCOPED_TRACE(lost);
    LinkSettings settings;
    settings.lost_from = 500 - lost;
    Link whole({}, 1, 500, 0);
    ASSERT_TRUE(whole.run(kSecond));
    Link link(settings, 1, 500, 0);
    ASSERT_TRUE(link.run(kSecond));
    link.expect_all_delivered_once();
    EXPECT_EQ(link.a().send.counters().resent, lost);
    EXPECT_LE(link.now() - whole.now(), 200 * kMicrosecond + 8 * 25 * kMicrosecond + 72'000);
  }
}

TEST(Link, EverythingAtOnceIsStillDeliveredOnce) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::uint64_t seed = test_seed(1'000 + round);
    SCOPED_TRACE(seed_trace(seed));
    Link link({.loss = 0.02, .duplication = 0.02, .reordering = 0.1}, seed, 3'000, 2'000);
    ASSERT_TRUE(link.run(30 * kSecond));
    link.expect_all_delivered_once();
  }
}

TEST(Link, DeliveryGoesOnAcrossTheEndOf32BitSequences) {
  const std::uint64_t seed = test_seed(5);
  SCOPED_TRACE(seed_trace(seed));
  Link link({.loss = 0.02, .duplication = 0.02, .reordering = 0.02}, seed, 3'000, 3'000, {},
            (1ULL << 32) - 1'500);
  ASSERT_TRUE(link.run(30 * kSecond));
  link.expect_all_delivered_once();
}

TEST(Link, ThirtyPercentLossCompletes) {
  for (std::uint64_t round = 0; round < 10; ++round) {
    const std::uint64_t seed = test_seed(2'000 + round);
    SCOPED_TRACE(seed_trace(seed));
    Link link({.loss = 0.3, .reordering = 0.05}, seed, 1'000, 1'000);
    ASSERT_TRUE(link.run(60 * kSecond));
    link.expect_all_delivered_once();
  }
}

TEST(Link, ReorderingAloneIsLearnedAndCostsFewResends) {
  const std::uint64_t seed = test_seed(3);
  SCOPED_TRACE(seed_trace(seed));
  Link link({.reordering = 0.3, .jitter = 4 * kMicrosecond}, seed, 20'000, 0);
  ASSERT_TRUE(link.run(kSecond));
  link.expect_all_delivered_once();
  EXPECT_LE(link.a().send.counters().resent, 20U);
}

TEST(Link, ASmallBudgetWithLossNeverStallsForGood) {
  for (std::uint64_t round = 0; round < 10; ++round) {
    const std::uint64_t seed = test_seed(4'000 + round);
    SCOPED_TRACE(seed_trace(seed));
    const CreditSettings credit{.budget_bytes = 4 * 1500, .segment_bytes = 1500};
    Link link({.loss = 0.1}, seed, 500, 300, credit);
    ASSERT_TRUE(link.run(60 * kSecond));
    link.expect_all_delivered_once();
  }
}

}  // namespace
}  // namespace gradcube::protocol
