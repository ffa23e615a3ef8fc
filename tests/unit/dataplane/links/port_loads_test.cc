// What a port has left of its rate.

#include "dataplane/links/port_loads.h"

#include <gtest/gtest.h>

namespace gradcube::dataplane {
namespace {

using protocol::Nanoseconds;

constexpr std::uint64_t kRate = 1'000'000'000;
constexpr Nanoseconds kStep = PortLoads::kShortest;
constexpr std::uint64_t kFrame = 1226;  // and 24 beside it: 10,000 bits

class CountingPort final : public Port {
 public:
  CountingPort() : Port(1, 9000) {}
  std::uint16_t receive(std::uint16_t, rte_mbuf**, std::uint16_t) override { return 0; }
  std::uint16_t transmit(std::uint16_t, rte_mbuf**, std::uint16_t) override { return 0; }
  std::uint16_t transmit_room(std::uint16_t) const override { return 0; }

  void send(std::uint16_t frames) { count_sent(0, frames, frames * kFrame); }
  void get(std::uint16_t frames) { count_received(0, frames, frames * kFrame); }
};

class Loads : public testing::Test {
 protected:
  // So many frames in each direction in each of so many steps.
  void pass(unsigned steps, std::uint16_t sent, std::uint16_t received) {
    for (unsigned i = 0; i < steps; ++i) {
      port_.send(sent);
      port_.get(received);
      loads_.sample(now_ += kStep);
    }
  }

  CountingPort port_;
  PortLoads loads_;
  Nanoseconds now_ = 0;
};

TEST_F(Loads, AreTheRateOfAPortThatIsIdle) {
  loads_.add(port_, kRate);
  pass(100, 0, 0);
  EXPECT_EQ(loads_.left_out(0), kRate);
  EXPECT_EQ(loads_.left_in(0), kRate);
}

TEST_F(Loads, FollowWhatIsCarriedInEachDirection) {
  loads_.add(port_, kRate);
  pass(100, 250, 125);  // half of the rate, and a quarter
  EXPECT_NEAR(static_cast<double>(loads_.left_out(0)), 0.5e9, 1e6);
  EXPECT_NEAR(static_cast<double>(loads_.left_in(0)), 0.75e9, 1e6);
  pass(100, 0, 500);
  EXPECT_NEAR(static_cast<double>(loads_.left_out(0)), 1e9, 1e6);
  EXPECT_NEAR(static_cast<double>(loads_.left_in(0)), 0, 1e6);
}

// Half of a change is seen after the time of the average, within what its steps round.
TEST_F(Loads, AreAverages) {
  loads_.add(port_, kRate);
  pass(PortLoads::kAverage / kStep, 500, 0);
  EXPECT_GT(loads_.left_out(0), kRate / 4);
  EXPECT_LT(loads_.left_out(0), kRate / 2);
}

TEST_F(Loads, AreNeverLessThanNothing) {
  loads_.add(port_, kRate);
  pass(100, 2000, 2000);
  EXPECT_EQ(loads_.left_out(0), 0u);
}

TEST_F(Loads, AreUnboundedWithoutARate) {
  loads_.add(port_, 0);
  pass(100, 500, 500);
  EXPECT_EQ(loads_.left_out(0), UINT64_MAX);
  EXPECT_EQ(loads_.left_in(0), UINT64_MAX);
}

TEST_F(Loads, KnowNothingOfWhatWasCarriedBefore) {
  port_.send(60'000);
  loads_.add(port_, kRate);
  pass(1, 0, 0);
  EXPECT_EQ(loads_.left_out(0), kRate);
}

// Whoever samples late has an average over all the time.
TEST_F(Loads, TakeALongPauseForWhatItIs) {
  loads_.add(port_, kRate);
  port_.send(500);
  loads_.sample(1'000'000'000);
  EXPECT_GT(loads_.left_out(0), kRate - kRate / 100);
}

}  // namespace
}  // namespace gradcube::dataplane
