#include "protocol/receive_window.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/unit/protocol/arrive.h"

namespace gradcube::protocol {
namespace {

constexpr unsigned kWindow = ReceiveWindow::kWindow;

TEST(ReceiveWindow, EachSequenceIsFreshOnceInWhateverOrder) {
  ReceiveWindow window(kWindow);
  for (unsigned sequence : {3U, 1U, 0U, 2U, 127U}) {
    EXPECT_EQ(arrive(window, sequence), Arrival::fresh);
    EXPECT_EQ(arrive(window, sequence), Arrival::duplicate);
    EXPECT_TRUE(window.received(sequence));
  }
  EXPECT_EQ(window.cumulative(), 4U);
  EXPECT_EQ(window.arrivals(), 5U);
  EXPECT_EQ(window.highest(), 128U);
  EXPECT_FALSE(window.received(4));
  EXPECT_FALSE(window.received(128));
}

TEST(ReceiveWindow, TheBitmapSpeaksOfTheSequencesBehindTheFirstMissing) {
  ReceiveWindow window(kWindow);
  arrive(window, 0);
  arrive(window, 2);
  arrive(window, 4);
  arrive(window, 65);
  EXPECT_EQ(window.acknowledged(), 1U);
  EXPECT_EQ(window.selective(), 1ULL | 1ULL << 2 | 1ULL << 63);
}

TEST(ReceiveWindow, WhatLiesBeyondTheWindowIsOutside) {
  ReceiveWindow window(2);
  EXPECT_EQ(arrive(window, 2), Arrival::outside);
  EXPECT_EQ(arrive(window, 0), Arrival::fresh);
  EXPECT_EQ(arrive(window, 2), Arrival::outside) << "the first is not consumed";
  window.set_consumed(1, 0);
  EXPECT_EQ(arrive(window, 2), Arrival::fresh);
  EXPECT_EQ(arrive(window, 0x7fffffff), Arrival::outside);
}

TEST(ReceiveWindow, WhatLiesBeforeTheFlowBeganIsOutside) {
  ReceiveWindow window(kWindow);
  EXPECT_EQ(arrive(window, 0xffffffffU), Arrival::outside);
  arrive(window, 0);
  EXPECT_EQ(arrive(window, 0), Arrival::duplicate);
  EXPECT_EQ(arrive(window, 0xffffffffU), Arrival::outside);
}

TEST(ReceiveWindow, TheLimitNeverFallsAndNeverPassesOneWindow) {
  ReceiveWindow window(kWindow);
  EXPECT_EQ(window.limit(), 0U) << "nothing is granted that was not asked for";
  EXPECT_TRUE(window.raise_limit(10));
  EXPECT_FALSE(window.raise_limit(9));
  EXPECT_EQ(window.limit(), 10U);
  EXPECT_TRUE(window.raise_limit(100'000));
  EXPECT_EQ(window.limit(), kWindow);
  EXPECT_EQ(window.credit(), kWindow);
}

TEST(ReceiveWindow, WhatComesUnaskedRaisesTheLimitWithoutAFrameThatSaysSo) {
  ReceiveWindow window(kWindow);
  EXPECT_EQ(arrive(window, 0), Arrival::fresh);
  EXPECT_EQ(arrive(window, 1), Arrival::fresh);
  EXPECT_EQ(window.limit(), 2U);
  EXPECT_EQ(window.credit(), 0U);
  EXPECT_FALSE(window.acknowledgement_owed(0));
}

TEST(ReceiveWindow, SequencesGoOnBeyond32Bits) {
  const std::uint64_t first = (1ULL << 32) - 200;
  ReceiveWindow window(kWindow, first);
  for (std::uint64_t sequence = first; sequence < first + 400; sequence += 2) {
    window.raise_limit(sequence + kWindow);
    ASSERT_EQ(arrive(window, sequence + 1), Arrival::fresh);
    ASSERT_EQ(arrive(window, sequence), Arrival::fresh);
    ASSERT_EQ(arrive(window, sequence + 1), Arrival::duplicate);
    ASSERT_EQ(window.cumulative(), sequence + 2);
    window.set_consumed(sequence + 2, 0);
  }
  EXPECT_EQ(window.acknowledged(), 200U);
  EXPECT_EQ(window.expand(0xfffffff0U), (1ULL << 32) - 16);
  EXPECT_EQ(window.expand(300), (1ULL << 32) + 300);
}

TEST(ReceiveWindow, HoldsWhatIsAcknowledgedAndNotConsumed) {
  ReceiveWindow window(kWindow, 1'000);
  EXPECT_EQ(window.consumed(), 1'000U);
  EXPECT_EQ(window.held(), 0U);
  for (std::uint64_t sequence : {1'000U, 1'001U, 1'002U, 1'004U}) arrive(window, sequence);
  EXPECT_EQ(window.held(), 3U);
  EXPECT_TRUE(window.set_consumed(1'002, 0));
  EXPECT_EQ(window.held(), 1U);
  EXPECT_FALSE(window.set_consumed(1'001, 0)) << "it never falls";
  EXPECT_EQ(window.consumed(), 1'002U);
  EXPECT_TRUE(window.set_consumed(1'005, 0));
  EXPECT_EQ(window.consumed(), 1'003U) << "what has not arrived cannot be consumed";
  EXPECT_EQ(window.held(), 0U);
}

TEST(ReceiveWindow, NeverHoldsMoreThanOneWindow) {
  ReceiveWindow window(kWindow);
  for (std::uint64_t sequence = 0; sequence < 300; ++sequence) {
    EXPECT_EQ(arrive(window, sequence), sequence < kWindow ? Arrival::fresh : Arrival::outside);
    EXPECT_EQ(window.held(), std::min<std::uint64_t>(sequence + 1, kWindow));
  }
}

TEST(Acknowledgement, InOrderSegmentsAreAnsweredByTheFourthOrAfterTheDelay) {
  ReceiveWindow window(kWindow);
  EXPECT_FALSE(window.acknowledgement_owed(1'000'000));
  EXPECT_EQ(window.acknowledgement_deadline(), kNever);
  arrive(window, 0, 100);
  arrive(window, 1, 200);
  arrive(window, 2, 300);
  EXPECT_FALSE(window.acknowledgement_owed(300));
  EXPECT_EQ(window.acknowledgement_deadline(), 100 + kAcknowledgeDelay);
  EXPECT_TRUE(window.acknowledgement_owed(100 + kAcknowledgeDelay));
  arrive(window, 3, 400);
  EXPECT_TRUE(window.acknowledgement_owed(400));
  window.acknowledged_now();
  EXPECT_FALSE(window.acknowledgement_owed(kMillisecond));
}

TEST(Acknowledgement, IsOwedAtOnceWhenTheOwnerSaysThatTheSenderWaits) {
  ReceiveWindow window(kWindow);
  arrive(window, 0, 100);
  EXPECT_FALSE(window.acknowledgement_owed(100));
  window.acknowledge_at_once();
  EXPECT_TRUE(window.acknowledgement_owed(100));
  window.acknowledged_now();
  EXPECT_FALSE(window.acknowledgement_owed(kMillisecond));
}

TEST(Acknowledgement, AGapItsEndADuplicateAndAnOutsiderAreAnsweredAtOnce) {
  ReceiveWindow window(kWindow);
  arrive(window, 1);
  EXPECT_TRUE(window.acknowledgement_owed(0));
  window.acknowledged_now();
  arrive(window, 3);
  EXPECT_TRUE(window.acknowledgement_owed(0));
  window.acknowledged_now();
  arrive(window, 0);  // ends one gap; another is left
  EXPECT_TRUE(window.acknowledgement_owed(0));
  window.acknowledged_now();
  arrive(window, 2);
  EXPECT_TRUE(window.acknowledgement_owed(0));
  window.acknowledged_now();
  arrive(window, 2);
  EXPECT_TRUE(window.acknowledgement_owed(0));
  window.acknowledged_now();
  arrive(window, 1000);
  EXPECT_TRUE(window.acknowledgement_owed(0));
  window.acknowledged_now();
  window.on_probe();
  EXPECT_TRUE(window.acknowledgement_owed(0));
}

// One segment has arrived and been acknowledged, and is unread.
ReceiveWindow with_one_held() {
  ReceiveWindow window(kWindow);
  arrive(window, 0, 0);
  window.acknowledged_now();
  EXPECT_EQ(window.acknowledgement_deadline(), kNever) << "an unread segment needs no frame";
  return window;
}

TEST(Acknowledgement, TheConsumptionOfAllThatCameIsToldOnceAfterTheDelay) {
  ReceiveWindow window = with_one_held();
  window.set_consumed(1, 1'000);
  EXPECT_EQ(window.acknowledgement_deadline(), 1'000 + kAcknowledgeDelay);
  EXPECT_FALSE(window.acknowledgement_owed(999 + kAcknowledgeDelay));
  EXPECT_TRUE(window.acknowledgement_owed(1'000 + kAcknowledgeDelay));
  window.acknowledged_now();
  EXPECT_EQ(window.acknowledgement_deadline(), kNever);
  window.set_consumed(1, 2'000);
  EXPECT_EQ(window.acknowledgement_deadline(), kNever);
}

TEST(Acknowledgement, AConsumptionThatLeavesSomethingUnreadOrMissingIsNotToldByItself) {
  ReceiveWindow window = with_one_held();
  arrive(window, 1, 0);
  arrive(window, 3, 0);
  window.acknowledged_now();
  window.set_consumed(1, 1'000);  // 1 is unread
  EXPECT_EQ(window.acknowledgement_deadline(), kNever);
  window.set_consumed(2, 1'000);  // 2 is missing
  EXPECT_EQ(window.acknowledgement_deadline(), kNever);
  arrive(window, 2, 2'000);
  window.acknowledged_now();
  window.set_consumed(4, 3'000);
  EXPECT_EQ(window.acknowledgement_deadline(), 3'000 + kAcknowledgeDelay);
}

TEST(Acknowledgement, ThatWaitsAlreadyCarriesTheConsumption) {
  ReceiveWindow window(kWindow);
  arrive(window, 0, 100);
  window.set_consumed(1, 200);
  EXPECT_EQ(window.acknowledgement_deadline(), 100 + kAcknowledgeDelay);
  window.acknowledged_now();
  EXPECT_EQ(window.acknowledgement_deadline(), kNever);
}

TEST(Acknowledgement, OfASegmentThatComesInTheDelayCarriesTheConsumption) {
  ReceiveWindow window = with_one_held();
  window.set_consumed(1, 1'000);
  arrive(window, 1, 2'000);
  EXPECT_EQ(window.acknowledgement_deadline(), 2'000 + kAcknowledgeDelay);
  arrive(window, 2, 3'000);
  EXPECT_EQ(window.acknowledgement_deadline(), 2'000 + kAcknowledgeDelay);
  window.acknowledged_now();
  EXPECT_EQ(window.acknowledgement_deadline(), kNever);
}

TEST(Acknowledgement, ASenderWithoutCreditIsToldOfTheFirstNewOne) {
  ReceiveWindow window(kWindow);
  window.raise_limit(1);
  arrive(window, 0);
  window.acknowledged_now();
  EXPECT_FALSE(window.acknowledgement_owed(0));
  window.raise_limit(2);
  EXPECT_TRUE(window.acknowledgement_owed(0));
  EXPECT_LE(window.acknowledgement_deadline(), 0);
}

TEST(Acknowledgement, ASenderWithMuchCreditIsNotToldOfALittleMore) {
  ReceiveWindow window(kWindow);
  window.raise_limit(64);
  window.acknowledged_now();
  window.raise_limit(66);
  EXPECT_FALSE(window.acknowledgement_owed(0));
  window.raise_limit(128);
  EXPECT_TRUE(window.acknowledgement_owed(0));
}

}  // namespace
}  // namespace gradcube::protocol
