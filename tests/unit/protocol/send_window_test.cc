#include "protocol/send_window.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace gradcube::protocol {
namespace {

constexpr RecoverySettings kSettings{};
constexpr Nanoseconds kRtt = 20 * kMicrosecond;

// A window with the RTT measured and `count` sequences sent at `now`, the first of them being
// `first()`.
class SendWindowTest : public testing::Test {
 protected:
  SendWindowTest() {
    window_.on_acknowledgement(0, 0, 1, 0, 0);
    window_.record_send(0);
    window_.on_acknowledgement(1, 0, SendWindow::kWindow, 0, kRtt);
    now_ = kMillisecond;
  }

  std::uint64_t send(unsigned count) {
    const std::uint64_t first = window_.next();
    for (unsigned index = 0; index < count; ++index) window_.record_send(now_);
    return first;
  }

  AckResult acknowledge(std::uint64_t point, std::uint64_t selective = 0) {
    return window_.on_acknowledgement(static_cast<std::uint32_t>(point), selective, 128, 0, now_);
  }

  // `held` of what lies below `point` are unread.
  AckResult acknowledge_held(std::uint64_t point, std::uint8_t held) {
    return window_.on_acknowledgement(static_cast<std::uint32_t>(point), 0, 128, held, now_);
  }

  std::vector<std::uint64_t> resend_all() {
    std::vector<std::uint64_t> resent;
    while (const auto lost = window_.next_lost()) {
      resent.push_back(*lost);
      window_.record_resend(*lost, now_);
    }
    return resent;
  }

  // The first of eight segments is lost; three deliveries behind it show this if no reordering has
  // been seen, and else the reorder window does.
  void recover() {
    const auto first = send(8);
    now_ += kRtt;
    acknowledge(first, 0b111'1111);
    now_ = std::max(now_, std::min(window_.deadline(), now_ + kRtt));
    window_.on_timer(now_);
    ASSERT_EQ(resend_all(), Sequences{first});
    now_ += kRtt;
    acknowledge(first + 8);
    now_ += kMillisecond;
  }

  // The first of eight segments comes late, but it has been sent again by then.
  void resend_in_vain() {
    const auto first = send(8);
    now_ += kRtt;
    acknowledge(first, 0b111'1111);
    now_ = std::max(now_, std::min(window_.deadline(), now_ + kRtt));
    window_.on_timer(now_);
    ASSERT_EQ(resend_all(), Sequences{first});
    now_ += kRtt / 8;
    acknowledge(first + 8);
    now_ += kMillisecond;
  }

  // How long after the first delivery behind a gap the gap is found to be a loss. The missing
  // segment then arrives.
  Nanoseconds reorder_window() {
    const auto first = send(2);
    now_ += kRtt;
    acknowledge(first, 0b1);
    const Nanoseconds wait = window_.deadline() - now_;
    acknowledge(first + 2);
    now_ += kMillisecond;
    return wait;
  }

  using Sequences = std::vector<std::uint64_t>;

  SendWindow window_{kSettings};
  Nanoseconds now_ = 0;
};

TEST(SendWindow, SendsNoMoreThanTheCreditAndOneWindow) {
  SendWindow window(kSettings);
  EXPECT_FALSE(window.may_send());
  window.on_acknowledgement(0, 0, 2, 0, 0);
  window.record_send(0);
  window.record_send(0);
  EXPECT_FALSE(window.may_send());
  window.on_acknowledgement(0, 0, 255, 0, 1);
  while (window.may_send()) window.record_send(1);
  EXPECT_EQ(window.in_flight(), SendWindow::kWindow);
}

TEST_F(SendWindowTest, AnAcknowledgementOfWhatWasNeverSentIsRefusedAndCounted) {
  const auto first = send(4);
  EXPECT_EQ(acknowledge(first + 5).status, AckStatus::refused);
  EXPECT_EQ(acknowledge(first, 1ULL << 3).status, AckStatus::refused);
  EXPECT_EQ(acknowledge(first, ~0ULL).status, AckStatus::refused);
  EXPECT_EQ(acknowledge(0xffffff00U).status, AckStatus::refused);
  EXPECT_EQ(acknowledge(0x80000000U).status, AckStatus::refused);
  EXPECT_EQ(window_.counters().refused, 5U);
  EXPECT_EQ(window_.cumulative(), first);
  EXPECT_EQ(acknowledge(first, 1ULL << 2).status, AckStatus::taken);
  EXPECT_TRUE(window_.acknowledged(first + 3));
  EXPECT_EQ(acknowledge(first + 4).delivered, 3U);
  EXPECT_EQ(window_.in_flight(), 0U);
}

TEST_F(SendWindowTest, AnOldAcknowledgementTakesNothingBack) {
  const auto first = send(10);
  acknowledge(first + 8);
  const std::uint64_t limit = window_.limit();
  const AckResult result =
      window_.on_acknowledgement(static_cast<std::uint32_t>(first + 2), 0b111, 1, 0, now_);
  EXPECT_EQ(result.status, AckStatus::taken);
  EXPECT_EQ(result.delivered, 0U);
  EXPECT_EQ(window_.cumulative(), first + 8);
  EXPECT_EQ(window_.limit(), limit);
}

TEST_F(SendWindowTest, AnOldAcknowledgementStillReportsWhatNoOtherDid) {
  const auto first = send(10);
  acknowledge(first + 4);
  EXPECT_EQ(acknowledge(first + 2, 1ULL << 4).delivered, 1U);
  EXPECT_TRUE(window_.acknowledged(first + 7));
}

TEST_F(SendWindowTest, ThreeDeliveriesBehindAGapFindTheLossAtOnce) {
  const auto first = send(8);
  now_ += kRtt;
  acknowledge(first, 0b1);
  EXPECT_FALSE(window_.next_lost());
  acknowledge(first, 0b111);
  EXPECT_EQ(resend_all(), Sequences{first});
}

TEST_F(SendWindowTest, OneDeliveryBehindAGapFindsTheLossAfterTheReorderWindow) {
  const auto first = send(2);
  now_ += kRtt;
  acknowledge(first, 0b1);
  EXPECT_FALSE(window_.next_lost());
  EXPECT_EQ(window_.deadline(), now_ + kRtt / 4);
  now_ = window_.deadline();
  window_.on_timer(now_);
  EXPECT_EQ(resend_all(), Sequences{first});
}

TEST_F(SendWindowTest, AResendIsNotRepeatedWithinARoundTrip) {
  const auto first = send(8);
  now_ += kRtt;
  acknowledge(first, 0b111);
  EXPECT_EQ(resend_all(), Sequences{first});
  for (unsigned later = 4; later < 8; ++later) {
    now_ += kRtt / 8;
    acknowledge(first, (1ULL << later) - 1);
    EXPECT_FALSE(window_.next_lost());
  }
}

TEST_F(SendWindowTest, ALostResendIsFoundByWhatWasSentAfterIt) {
  const auto first = send(4);
  now_ += kRtt;
  acknowledge(first, 0b111);
  resend_all();
  now_ += kMicrosecond;
  send(4);
  now_ += 2 * kRtt;
  acknowledge(first, 0b1111111);
  EXPECT_EQ(resend_all(), Sequences{first});
}

TEST_F(SendWindowTest, ReorderingOnceSeenIsWaitedFor) {
  const auto first = send(8);
  now_ += kRtt;
  acknowledge(first, 0b1);
  acknowledge(first + 2);  // the first came late, but came
  acknowledge(first + 2, 0b1111);
  EXPECT_FALSE(window_.next_lost());
  EXPECT_GT(window_.deadline(), now_);
}

TEST_F(SendWindowTest, ATailLossIsProbedWithTheFirstMissing) {
  const auto first = send(5);
  now_ += kRtt;
  acknowledge(first + 2);
  const Nanoseconds since = now_;
  now_ = window_.deadline();
  EXPECT_GE(now_ - since, kSettings.probe_floor);
  EXPECT_LE(now_ - since, kSettings.probe_floor + kAcknowledgeDelay + 2 * kRtt);
  window_.on_timer(now_);
  EXPECT_EQ(resend_all(), Sequences{first + 2});
  EXPECT_EQ(window_.counters().probes, 1U);
  now_ += kRtt;
  acknowledge(first + 3);  // its delivery shows that those sent before it were lost too
  now_ += kRtt;
  window_.on_timer(now_);
  EXPECT_EQ(resend_all(), (Sequences{first + 3, first + 4}));
}

TEST_F(SendWindowTest, TimeoutsDoubleUpToTheCeiling) {
  const auto first = send(1);
  std::vector<Nanoseconds> waits;
  for (int round = 0; round < 12; ++round) {
    const Nanoseconds before = now_;
    now_ = window_.deadline();
    waits.push_back(now_ - before);
    window_.on_timer(now_);
    ASSERT_EQ(resend_all(), Sequences{first});
  }
  EXPECT_EQ(waits[1], kSettings.rto_floor);
  EXPECT_EQ(waits[2], 2 * kSettings.rto_floor);
  EXPECT_EQ(waits.back(), kSettings.rto_ceiling);
  EXPECT_EQ(window_.counters().probes, 1U);
  EXPECT_EQ(window_.counters().timeouts, 11U);
}

TEST_F(SendWindowTest, NothingOnItsWayAndCreditLeftNeedsNoTimer) {
  const auto first = send(3);
  now_ += kRtt;
  acknowledge(first + 3);
  EXPECT_EQ(window_.deadline(), kNever);
}

TEST(SendWindow, AsksOnceForEachCreditThatASegmentWaitsFor) {
  SendWindow window(kSettings);
  EXPECT_TRUE(window.must_ask());
  window.record_ask(3, 0);
  EXPECT_FALSE(window.must_ask());
  window.on_acknowledgement(0, 0, 2, 0, 1);
  EXPECT_FALSE(window.must_ask()) << "it may send";
  window.record_send(1);
  window.record_send(1);
  EXPECT_FALSE(window.must_ask()) << "the third has been asked for, too";
  window.on_acknowledgement(0, 0, 3, 0, 2);
  window.record_send(2);
  EXPECT_TRUE(window.must_ask());
}

TEST(SendWindow, WantsNothingAndSetsNoTimerBeforeItHasAsked) {
  SendWindow window(kSettings);
  EXPECT_EQ(window.deadline(), kNever);
  window.record_ask(1, kMillisecond);
  EXPECT_EQ(window.deadline(), kMillisecond + kSettings.rto_floor);
}

TEST(SendWindow, MaySendAFewBytesUnasked) {
  SendWindow window(kSettings);
  EXPECT_FALSE(window.may_send_unasked(SendWindow::kUnaskedBytes + 1));
  EXPECT_TRUE(window.may_send_unasked(SendWindow::kUnaskedBytes));
  window.record_unasked(SendWindow::kUnaskedBytes / 2, 0);
  EXPECT_TRUE(window.may_send_unasked(SendWindow::kUnaskedBytes / 2));
  EXPECT_FALSE(window.may_send_unasked(SendWindow::kUnaskedBytes / 2 + 1));
  window.record_unasked(SendWindow::kUnaskedBytes / 2, 0);
  EXPECT_FALSE(window.may_send_unasked(1));
  EXPECT_FALSE(window.may_send());
  window.on_acknowledgement(1, 0, 0, 0, kRtt);
  EXPECT_FALSE(window.may_send_unasked(1)) << "one of them is still on its way";
  window.on_acknowledgement(2, 0, 0, 0, kRtt);
  EXPECT_TRUE(window.may_send_unasked(SendWindow::kUnaskedBytes));
}

TEST(SendWindow, SendsNothingUnaskedBehindWhatWasGranted) {
  SendWindow window(kSettings);
  window.on_acknowledgement(0, 0, 1, 0, 0);
  EXPECT_FALSE(window.may_send_unasked(1)) << "it may send";
  window.record_send(0);
  EXPECT_FALSE(window.may_send_unasked(1));
}

TEST(SendWindow, SendsNothingUnaskedThatTheReceiverHasNoRoomFor) {
  SendWindow window(kSettings, 2);
  for (std::uint32_t sent = 1; sent <= 2; ++sent) {
    ASSERT_TRUE(window.may_send_unasked(100));
    window.record_unasked(100, 0);
    window.on_acknowledgement(sent, 0, 0, static_cast<std::uint8_t>(sent), kRtt);
  }
  EXPECT_FALSE(window.may_send_unasked(100)) << "both are unread";
  window.on_acknowledgement(2, 0, 0, 1, kRtt);
  EXPECT_TRUE(window.may_send_unasked(100));
}

TEST(SendWindow, OutOfCreditWithNothingOnItsWayItAsksAgain) {
  SendWindow window(kSettings);
  window.record_ask(2, 0);
  window.on_acknowledgement(0, 0, 1, 0, 0);
  window.record_send(0);
  window.on_acknowledgement(1, 0, 0, 0, kRtt);
  EXPECT_FALSE(window.may_send());
  EXPECT_FALSE(window.probe_owed());
  const Nanoseconds first = window.deadline();
  window.on_timer(first);
  EXPECT_TRUE(window.probe_owed());
  window.record_probe();
  const Nanoseconds second = window.deadline();
  EXPECT_GE(second - first, 2 * kSettings.rto_floor);
  window.on_timer(second);
  EXPECT_TRUE(window.probe_owed());
  window.on_acknowledgement(1, 0, 1, 0, second + kRtt);
  EXPECT_FALSE(window.probe_owed());
  EXPECT_TRUE(window.may_send());
}

TEST_F(SendWindowTest, ConsumedFollowsWhatTheReceiverHoldsAndNeverFalls) {
  const auto first = send(10);
  EXPECT_EQ(window_.consumed(), first);
  acknowledge_held(first + 6, 4);
  EXPECT_EQ(window_.consumed(), first + 2);
  acknowledge_held(first + 6, 1);
  EXPECT_EQ(window_.consumed(), first + 5);
  acknowledge_held(first + 6, 4);  // overtaken by the one before
  acknowledge_held(first + 2, 0);
  EXPECT_EQ(window_.consumed(), first + 5);
  acknowledge_held(first + 10, 0);
  EXPECT_EQ(window_.consumed(), first + 10);
  EXPECT_EQ(window_.consumed(), window_.cumulative());
}

TEST_F(SendWindowTest, MoreHeldThanWasAcknowledgedIsRefusedAndCounted) {
  const auto first = send(4);
  EXPECT_EQ(acknowledge_held(first + 2, static_cast<std::uint8_t>(first + 3)).status,
            AckStatus::refused);
  EXPECT_EQ(acknowledge_held(first + 2, 255).status, AckStatus::refused);
  EXPECT_EQ(window_.cumulative(), first);
  EXPECT_EQ(window_.counters().refused, 2U);
  EXPECT_EQ(acknowledge_held(first + 2, static_cast<std::uint8_t>(first + 2)).status,
            AckStatus::taken);
}

TEST(SendWindow, WhatLiesBeforeTheFlowBeganIsNeitherAcknowledgedNorHeld) {
  SendWindow window(kSettings, 128, 1'000);
  window.on_acknowledgement(1'000, 0, 4, 0, 0);
  window.record_send(0);
  EXPECT_EQ(window.consumed(), 1'000U);
  EXPECT_EQ(window.on_acknowledgement(1'001, 0, 4, 2, 1).status, AckStatus::refused);
  EXPECT_EQ(window.on_acknowledgement(999, 0, 4, 0, 1).status, AckStatus::refused);
  EXPECT_EQ(window.on_acknowledgement(1'001, 0, 4, 1, 1).status, AckStatus::taken);
  EXPECT_EQ(window.consumed(), 1'000U);
}

TEST(SendWindow, AFieldThatIsFullSaysNothingOfTheConsumption) {
  SendWindow window(kSettings);
  window.on_acknowledgement(0, 0, 128, 0, 0);
  for (std::uint32_t sequence = 0; sequence < 300; ++sequence) {
    window.record_send(sequence);
    const auto held = static_cast<std::uint8_t>(std::min(sequence + 1, 255U));
    ASSERT_EQ(window.on_acknowledgement(sequence + 1, 0, 128, held, sequence).status,
              AckStatus::taken);
    ASSERT_EQ(window.consumed(), 0U);
  }
}

TEST_F(SendWindowTest, AsksForTheConsumptionOnlyWhenItIsAwaited) {
  const auto first = send(3);
  now_ += kRtt;
  acknowledge_held(first + 3, 3);
  EXPECT_EQ(window_.deadline(), kNever);
  now_ += kMillisecond;
  window_.await_consumed(now_);
  EXPECT_EQ(window_.deadline(), now_ + kSettings.rto_floor);
  now_ = window_.deadline();
  window_.await_consumed(now_);  // awaited already: no new wait
  window_.on_timer(now_);
  EXPECT_TRUE(window_.probe_owed());
  EXPECT_EQ(window_.deadline(), kNever);
  window_.record_probe();
  EXPECT_EQ(window_.deadline(), now_ + 2 * kSettings.rto_floor) << "it asks ever more seldom";
  acknowledge_held(first + 3, 2);  // the receiver is alive: the doubling begins again
  EXPECT_EQ(window_.deadline(), now_ + kSettings.rto_floor);
  acknowledge_held(first + 3, 0);
  EXPECT_EQ(window_.deadline(), kNever);
  EXPECT_EQ(window_.counters().credit_probes, 1U);
}

TEST_F(SendWindowTest, ANewsThatComesInTimeSparesTheProbe) {
  const auto first = send(1);
  acknowledge_held(first + 1, 1);
  window_.await_consumed(now_);
  now_ = window_.deadline();
  window_.on_timer(now_);
  EXPECT_TRUE(window_.probe_owed());
  acknowledge_held(first + 1, 0);
  EXPECT_FALSE(window_.probe_owed());
}

TEST_F(SendWindowTest, WhatIsSentAfterTheCallIsNotAwaited) {
  const auto first = send(2);
  window_.await_consumed(now_);
  send(2);
  acknowledge_held(first + 4, 2);
  EXPECT_EQ(window_.consumed(), first + 2);
  EXPECT_EQ(window_.deadline(), kNever);
}

TEST_F(SendWindowTest, WhatIsInFlightIsAskedForBeforeItsConsumption) {
  const auto first = send(1);
  window_.await_consumed(now_);
  now_ = window_.deadline();
  window_.on_timer(now_);
  EXPECT_FALSE(window_.probe_owed());
  EXPECT_EQ(resend_all(), Sequences{first});
  now_ += kRtt;
  acknowledge_held(first + 1, 1);
  EXPECT_EQ(window_.deadline(), now_ + kSettings.rto_floor);
}

TEST_F(SendWindowTest, WhatTheOwnerKnowsToHaveArrivedNeedsNoAcknowledgement) {
  const std::uint64_t first = send(4);
  acknowledge(first, 0b01);  // the second one
  now_ += kMillisecond;
  const Nanoseconds rtt = window_.rtt().smoothed();
  EXPECT_EQ(window_.take_delivered(first + 3, now_), 2U) << "the first and the third";
  EXPECT_EQ(window_.take_delivered(first + 3, now_), 0U);
  EXPECT_EQ(window_.cumulative(), first + 3);
  EXPECT_EQ(window_.in_flight(), 1U);
  EXPECT_EQ(window_.rtt().smoothed(), rtt) << "nobody knows when they arrived";
  EXPECT_EQ(window_.take_delivered(first + 99, now_), 1U) << "only what was sent";
  EXPECT_EQ(window_.cumulative(), window_.next());
  EXPECT_EQ(window_.deadline(), kNever);
  EXPECT_TRUE(resend_all().empty());
  EXPECT_EQ(acknowledge(first + 2).status, AckStatus::taken) << "a late word of the same is none";
  EXPECT_EQ(window_.cumulative(), window_.next());
}

TEST_F(SendWindowTest, WhatIsLostAndThenKnownToHaveArrivedIsNotSentAgain) {
  const std::uint64_t first = send(4);
  acknowledge(first, 0b111);
  ASSERT_EQ(window_.next_lost(), first);
  EXPECT_EQ(window_.take_delivered(first + 1, now_), 1U);
  EXPECT_EQ(window_.next_lost(), std::nullopt);
  EXPECT_EQ(window_.cumulative(), first + 4);
}

TEST_F(SendWindowTest, ResentSegmentsGiveNoRttSample) {
  const auto first = send(1);
  now_ = window_.deadline();
  window_.on_timer(now_);
  resend_all();
  const Nanoseconds smoothed = window_.rtt().smoothed();
  now_ += 10 * kRtt;
  acknowledge(first + 1);
  EXPECT_EQ(window_.rtt().smoothed(), smoothed);
}

TEST_F(SendWindowTest, AResendAnsweredFasterThanTheLightIsSpurious) {
  const auto first = send(1);
  now_ = window_.deadline();
  window_.on_timer(now_);
  resend_all();
  now_ += kRtt / 2;
  acknowledge(first + 1);
  EXPECT_EQ(window_.counters().spurious, 1U);
}

TEST_F(SendWindowTest, AfterThePathHasBecomeLongerASpuriousResendIsKnownAgain) {
  const Nanoseconds longer = 10 * kRtt;
  for (int exchange = 0; exchange < 12; ++exchange) {
    now_ += 1'000 * kMillisecond;
    const auto first = send(1);
    now_ += longer;
    acknowledge(first + 1);
  }
  EXPECT_EQ(window_.rtt().minimum(), longer);
  const auto first = send(1);
  now_ = window_.deadline();
  window_.on_timer(now_);
  ASSERT_EQ(resend_all(), Sequences{first});
  now_ += longer / 2;
  acknowledge(first + 1);
  EXPECT_EQ(window_.counters().spurious, 1U);
}

TEST_F(SendWindowTest, TheReorderWindowGrowsOncePerRecovery) {
  const auto first = send(8);
  now_ += kRtt;
  acknowledge(first + 1, 0b1'1110);  // first + 1 and first + 2 are missing
  now_ += kRtt;
  window_.on_timer(now_);
  ASSERT_EQ(resend_all(), (Sequences{first + 1, first + 2}));
  now_ += kRtt / 8;
  acknowledge(first + 8);
  EXPECT_EQ(window_.counters().spurious, 2U);
  EXPECT_EQ(reorder_window(), kRtt / 2);
}

TEST_F(SendWindowTest, SixteenRecoveriesWithoutASpuriousResendShrinkTheReorderWindow) {
  resend_in_vain();
  ASSERT_EQ(window_.counters().spurious, 1U);
  for (int recovery = 0; recovery < 16; ++recovery) {
    ASSERT_NO_FATAL_FAILURE(recover());
    ASSERT_EQ(reorder_window(), recovery < 15 ? kRtt / 2 : kRtt / 4) << recovery;
  }
}

TEST_F(SendWindowTest, ASpuriousResendLetsTheSixteenRecoveriesBeginAgain) {
  resend_in_vain();
  for (int recovery = 0; recovery < 15; ++recovery) ASSERT_NO_FATAL_FAILURE(recover());
  resend_in_vain();
  for (int recovery = 0; recovery < 15; ++recovery) ASSERT_NO_FATAL_FAILURE(recover());
  EXPECT_GT(reorder_window(), kRtt / 2);
  recover();
  EXPECT_EQ(reorder_window(), kRtt / 4);
}

TEST_F(SendWindowTest, ReorderingIsForgottenAfterSixteenRecoveries) {
  reorder_window();  // a segment that is only late
  for (int recovery = 0; recovery < 17; ++recovery) {
    const auto first = send(8);
    now_ += kRtt;
    acknowledge(first, 0b111);
    EXPECT_EQ(window_.next_lost().has_value(), recovery == 16) << recovery;
    now_ += kRtt / 2;
    window_.on_timer(now_);
    ASSERT_EQ(resend_all(), Sequences{first});
    now_ += kRtt;
    acknowledge(first + 8);
    now_ += kMillisecond;
  }
}

TEST_F(SendWindowTest, AnAnswerThatComesVeryLateDoesNotPutOffTheNextProbe) {
  auto first = send(1);
  now_ += 60'000 * kMillisecond;
  acknowledge(first + 1);
  ASSERT_GT(2 * window_.rtt().smoothed(), kSettings.rto_ceiling);
  first = send(1);
  for (int timer = 0; timer < 20; ++timer) {
    ASSERT_EQ(window_.deadline() - now_, kSettings.rto_ceiling);
    now_ = window_.deadline();
    window_.on_timer(now_);
    ASSERT_EQ(resend_all(), Sequences{first});
  }
}

TEST(SendWindow, TheProbeFloorHoldsAlsoAboveTheCeiling) {
  RecoverySettings settings;
  settings.probe_floor = 2 * settings.rto_ceiling;
  SendWindow window(settings);
  window.on_acknowledgement(0, 0, 1, 0, 0);
  window.record_send(0);
  EXPECT_EQ(window.deadline(), settings.probe_floor + settings.acknowledge_delay);
}

TEST_F(SendWindowTest, AResendOfWhatIsAcknowledgedOrWasNeverSentIsIgnored) {
  const auto first = send(2);
  acknowledge(first + 1);
  window_.record_resend(first, now_);
  window_.record_resend(first + 2, now_);
  EXPECT_EQ(window_.counters().resent, 0U);
}

}  // namespace
}  // namespace gradcube::protocol
