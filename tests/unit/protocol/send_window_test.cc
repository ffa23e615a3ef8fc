#include "protocol/send_window.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "tests/unit/protocol/send_window_fixture.h"

namespace gradcube::protocol {
namespace {

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

TEST_F(SendWindowTest, APathThatIsSlowerThanTheTimersIsMeasuredAfterAFewSegments) {
  constexpr Nanoseconds kSlow = 20 * kRtt;
  unsigned resent = 0;
  for (unsigned segment = 0; segment < 10; ++segment) {
    resent = 0;
    const Nanoseconds arrives = now_ + kSlow;
    const auto sequence = send(1);
    for (; window_.deadline() < arrives; resent += static_cast<unsigned>(resend_all().size())) {
      now_ = window_.deadline();
      window_.on_timer(now_);
    }
    now_ = arrives;
    acknowledge(sequence + 1);
    now_ += kSlow;
  }
  EXPECT_EQ(resent, 0U);
  EXPECT_GE(window_.rtt().smoothed(), kSlow / 4);
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
