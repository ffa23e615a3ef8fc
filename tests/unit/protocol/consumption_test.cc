// How a sender learns, over a link, that what it sent has been consumed.
#include <cstdint>
#include <gtest/gtest.h>

#include "tests/unit/protocol/link.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

TEST(Consumption, TheEndOfOneWayTrafficIsToldOneDelayAfterItIsConsumed) {
  for (const std::uint64_t segments : {1, 3, 500}) {
    for (const Nanoseconds reading : {0L, 10 * kMicrosecond, 3 * kMillisecond}) {
      SCOPED_TRACE(testing::Message() << segments << ' ' << reading);
      LinkSettings settings{.reading = reading};
      Link acknowledged(settings, 1, segments, 0);
      ASSERT_TRUE(acknowledged.run(10 * kSecond));
      settings.awaits_consumption = true;
      Link consumed(settings, 1, segments, 0);
      ASSERT_TRUE(consumed.run(10 * kSecond));
      EXPECT_LE(consumed.now() - acknowledged.now(), reading + kAcknowledgeDelay + settings.delay);
      EXPECT_LE(consumed.b().frames - acknowledged.b().frames,
                1 + consumed.a().send.counters().credit_probes);
    }
  }
}

TEST(Consumption, TheEndOfOneWayTrafficIsLearnedThoughTheNewsOfItIsLost) {
  for (const unsigned lost : {1U, 2U, 5U}) {
    SCOPED_TRACE(lost);
    LinkSettings settings{
        .reading = 100 * kMicrosecond, .awaits_consumption = true, .lost_news = lost};
    Link link(settings, 1, 500, 0);
    ASSERT_TRUE(link.run(10 * kSecond));
    link.expect_all_delivered_once();
    EXPECT_EQ(link.a().send.counters().credit_probes, lost);
    EXPECT_EQ(link.a().send.counters().resent, 0U);
  }
}

TEST(Consumption, IsLearnedAtBothEndsWhateverIsLost) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::uint64_t seed = test_seed(5'000 + round);
    SCOPED_TRACE(seed_trace(seed));
    Link link({.loss = 0.3,
               .duplication = 0.05,
               .reordering = 0.05,
               .reading = 200 * kMicrosecond,
               .awaits_consumption = true},
              seed, 300, round % 2 == 0 ? 0 : 200);
    ASSERT_TRUE(link.run(60 * kSecond));
    link.expect_all_delivered_once();
  }
}

TEST(Consumption, IsToldByTwoWayTrafficWithoutFramesOfItsOwn) {
  const auto frames = [](Nanoseconds reading, bool awaits) {
    Link link({.reading = reading, .awaits_consumption = awaits}, 1, 5'000, 5'000);
    EXPECT_TRUE(link.run(kSecond));
    link.expect_all_delivered_once();
    return link.a().frames + link.b().frames;
  };
  // At the ends of the streams, where nothing is sent that could carry it.
  EXPECT_LE(frames(50 * kMicrosecond, true), frames(0, false) + 4);
}

}  // namespace
}  // namespace gradcube::protocol
