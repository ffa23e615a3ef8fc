// Round trips, spurious resends, and what a sender learns from them about reordering.

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "protocol/send_window.h"
#include "tests/unit/protocol/send_window_fixture.h"

namespace gradcube::protocol {
namespace {

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

}  // namespace
}  // namespace gradcube::protocol
