// What a send window makes of segments when its flow takes another path.

#include <gtest/gtest.h>

#include "protocol/send_window.h"
#include "tests/unit/protocol/send_window_fixture.h"

namespace gradcube::protocol {
namespace {

// With credit for `segments`, of which all are sent at `now`.
SendWindow window_with(unsigned segments, Nanoseconds now) {
  SendWindow window(kSettings);
  window.on_acknowledgement(0, 0, 100, 0, now);
  for (unsigned i = 0; i < segments; ++i) window.record_send(now);
  return window;
}

TEST(SendWindowPath, SendsAllAgainThatWasOnAPathThatFailed) {
  SendWindow window = window_with(5, 1000);
  window.on_acknowledgement(1, 0b10, 100, 0, 2000);  // 0 and 3 have arrived
  window.change_path(true, 3000);
  for (const std::uint64_t lost : {1U, 2U, 4U}) {
    ASSERT_EQ(window.next_lost(), lost);
    window.record_resend(lost, 3000);
  }
  EXPECT_EQ(window.next_lost(), std::nullopt);
}

TEST(SendWindowPath, LeavesWhatIsOnItsWayOverAPathThatWorks) {
  SendWindow window = window_with(5, 1000);
  window.change_path(false, 2000);
  EXPECT_EQ(window.next_lost(), std::nullopt);
  EXPECT_NE(window.deadline(), kNever) << "a timer still finds what was lost";
}

TEST(SendWindowPath, MeasuresTheNewPathAlone) {
  SendWindow window = window_with(2, 0);
  window.on_acknowledgement(1, 0, 100, 0, 5 * kMillisecond);
  ASSERT_EQ(window.rtt().smoothed(), 5 * kMillisecond);
  window.change_path(false, 6 * kMillisecond);
  EXPECT_FALSE(window.rtt().measured());
  window.on_acknowledgement(2, 0, 100, 0, 7 * kMillisecond);
  EXPECT_FALSE(window.rtt().measured()) << "from what was sent over the old one";
  window.record_send(8 * kMillisecond);
  window.on_acknowledgement(3, 0, 100, 0, 9 * kMillisecond);
  EXPECT_EQ(window.rtt().smoothed(), kMillisecond);
}

// What was sent over the old path, which is longer, arrives after what was sent later.
TEST(SendWindowPath, TakesSegmentsThatAreOvertakenForNeitherLostNorReordered) {
  SendWindow window = window_with(4, 0);
  window.change_path(false, 1000);
  for (unsigned i = 0; i < 4; ++i) window.record_send(2000);
  window.on_acknowledgement(0, 0b1111000, 100, 0, 2000 + 10 * kMicrosecond);
  EXPECT_EQ(window.next_lost(), std::nullopt);
  window.on_timer(2000 + 60 * kMicrosecond);
  EXPECT_EQ(window.next_lost(), std::nullopt);
  window.on_acknowledgement(8, 0, 100, 0, 2000 + 70 * kMicrosecond);
  // Three deliveries after a gap are a loss, as where nothing was ever reordered.
  for (unsigned i = 0; i < 4; ++i) window.record_send(3 * kMillisecond);
  window.on_acknowledgement(8, 0b111, 100, 0, 3 * kMillisecond + 10 * kMicrosecond);
  EXPECT_EQ(window.next_lost(), 8u);
}

TEST(SendWindowPath, FindsByATimerWhatIsLostOnTheOldOne) {
  SendWindow window = window_with(1, 0);
  window.change_path(false, 1000);
  window.record_send(2000);
  window.on_acknowledgement(0, 1, 100, 0, 2000 + 10 * kMicrosecond);
  EXPECT_EQ(window.next_lost(), std::nullopt);
  window.on_timer(window.deadline());
  EXPECT_EQ(window.next_lost(), 0u);
}

}  // namespace
}  // namespace gradcube::protocol
