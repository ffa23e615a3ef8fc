// A send window whose round trip is known, for the tests of what it sends, asks for and finds lost.
#ifndef GRADCUBE_TESTS_UNIT_PROTOCOL_SEND_WINDOW_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_PROTOCOL_SEND_WINDOW_FIXTURE_H_

#include <gtest/gtest.h>
#include <vector>

#include "protocol/send_window.h"

namespace gradcube::protocol {

inline constexpr RecoverySettings kSettings{};
inline constexpr Nanoseconds kRtt = 20 * kMicrosecond;

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

  // The first of eight segments is missing; three deliveries behind it show this if no reordering
  // has been seen, and else the reorder window does. It is sent again. Returns its sequence.
  std::uint64_t resend_first_of_eight() {
    const auto first = send(8);
    now_ += kRtt;
    acknowledge(first, 0b111'1111);
    now_ = std::max(now_, std::min(window_.deadline(), now_ + kRtt));
    window_.on_timer(now_);
    EXPECT_EQ(resend_all(), Sequences{first});
    return first;
  }
  void recover() {
    const auto first = resend_first_of_eight();
    now_ += kRtt;
    acknowledge(first + 8);
    now_ += kMillisecond;
  }
  // It was late, and not lost.
  void resend_in_vain() {
    const auto first = resend_first_of_eight();
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

}  // namespace gradcube::protocol

#endif  // GRADCUBE_TESTS_UNIT_PROTOCOL_SEND_WINDOW_FIXTURE_H_
