// When a sender may send, asks for credit, and asks what has been consumed.

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "protocol/send_window.h"
#include "tests/unit/protocol/send_window_fixture.h"

namespace gradcube::protocol {
namespace {

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

}  // namespace
}  // namespace gradcube::protocol
