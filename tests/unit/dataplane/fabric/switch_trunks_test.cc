// A tree of switches in virtual time: frames between servers under different switches share trunks.

#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <utility>
#include <vector>

#include "dataplane/fabric/emulated/emulated_switch.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/switch_fixture.h"

namespace gradcube::dataplane {
namespace {

class SwitchTrunksTest : public SwitchTest {
 protected:
  static constexpr std::uint64_t kRate = 1'000'000'000;
  static constexpr std::uint32_t kBytes = 1000;

  static std::int64_t wire_time(std::uint64_t rate) {
    return static_cast<std::int64_t>(std::uint64_t{kBytes + 24} * 8 * 1'000'000'000 / rate);
  }
  // Servers 0 and 1 under one switch, 2 and 3 under another: tree:2x2.
  static EmulatedSwitchOptions pairs(std::uint64_t trunk_rate) {
    EmulatedSwitchOptions options;
    options.profile.bits_per_second = kRate;
    options.trunks = {{2, {.bits_per_second = trunk_rate}}};
    return options;
  }

  // Sends `frames` frames over each of these pairs, and returns when each receiver had the last.
  std::map<std::uint16_t, std::int64_t> run(
      const std::vector<std::pair<std::uint16_t, std::uint16_t>>& flows, unsigned frames) {
    poll();
    const std::int64_t start = clock_.now();
    for (unsigned i = 0; i < frames; ++i) {
      for (const auto& [from, to] : flows) EXPECT_TRUE(send(from, {.to = to, .bytes = kBytes}));
    }
    std::map<std::uint16_t, std::int64_t> last;
    run_until_quiet([&] {
      for (std::uint16_t server = 0; server < ports_.size(); ++server) {
        const std::size_t count = received_numbers(server).size();
        got_[server] += count;
        if (count != 0) last[server] = clock_.now() - start;
      }
    });
    return last;
  }

  std::uint64_t dropped_at_trunks() const {
    std::uint64_t dropped = 0;
    for (const auto& trunk : switch_->trunk_counts()) dropped += trunk.counts.dropped_queue;
    return dropped;
  }

  std::map<std::uint16_t, std::size_t> got_;
};

TEST_F(SwitchTrunksTest, AFrameBetweenSwitchesPassesTheTrunkUpAndDown) {
  EmulatedSwitchOptions options = pairs(kRate / 2);
  options.profile.delay = 1'000;
  options.trunks.front().link.delay = 20'000;
  build(4, options);
  EXPECT_EQ(run({{0, 1}}, 1).at(1), 2 * wire_time(kRate) + 1'000);
  EXPECT_EQ(run({{1, 2}}, 1).at(2),
            2 * wire_time(kRate) + 1'000 + 2 * wire_time(kRate / 2) + 40'000);
}

TEST_F(SwitchTrunksTest, OneThatIsAsFastAsTheLinksBelowBindsNobody) {
  build(4, pairs(2 * kRate));
  constexpr unsigned kFrames = 500;
  const auto last = run({{0, 2}, {1, 3}}, kFrames);
  for (const std::uint16_t server : {2, 3}) {
    EXPECT_EQ(got_[server], kFrames);
    EXPECT_NEAR(static_cast<double>(last.at(server)),
                static_cast<double>(kFrames * wire_time(kRate)), 4.0 * wire_time(kRate));
  }
}

TEST_F(SwitchTrunksTest, ThoseBelowASwitchShareAnOversubscribedOne) {
  build(4, pairs(kRate / 2));
  constexpr unsigned kFrames = 200;
  const auto last = run({{0, 2}, {1, 3}, {3, 2}}, kFrames);
  // Four times as long as alone: two flows over half of the rate. Under one switch nothing changes,
  // but that the receiver has two senders.
  EXPECT_NEAR(static_cast<double>(last.at(3)), 4.0 * kFrames * wire_time(kRate),
              8.0 * wire_time(kRate));
  EXPECT_EQ(got_[2], 2 * kFrames);
  EXPECT_EQ(got_[3], kFrames);
  EXPECT_EQ(dropped_at_trunks(), 0u);
}

TEST_F(SwitchTrunksTest, SlowsNobodyUnderOneSwitch) {
  build(4, pairs(kRate / 100));
  constexpr unsigned kFrames = 200;
  const auto last = run({{0, 1}, {2, 3}}, kFrames);
  for (const std::uint16_t server : {1, 3}) {
    EXPECT_EQ(last.at(server), (kFrames + 1) * wire_time(kRate));
  }
}

TEST_F(SwitchTrunksTest, DropsWhatItsQueueHasNoRoomForAndMarksWhatIsLong) {
  EmulatedSwitchOptions options = pairs(kRate / 10);
  options.trunks.front().link.queue_bytes = 20 * kBytes;
  options.trunks.front().link.mark_bytes = 10 * kBytes;
  build(4, options);
  run({{0, 2}}, 100);
  std::uint64_t marked = 0;
  for (const auto& trunk : switch_->trunk_counts()) marked += trunk.counts.marked;
  EXPECT_EQ(got_[2] + dropped_at_trunks(), 100u);
  EXPECT_GT(dropped_at_trunks(), 50u);
  EXPECT_GT(marked, 10u);
}

TEST_F(SwitchTrunksTest, OfThreeLevelsArePassedUpToTheLowestSwitchThatHasBoth) {
  EmulatedSwitchOptions options;
  options.profile.bits_per_second = kRate;
  options.trunks = {{2, {.bits_per_second = kRate / 2}}, {4, {.bits_per_second = kRate / 4}}};
  build(8, options);
  const std::int64_t ports = 2 * wire_time(kRate);
  EXPECT_EQ(run({{6, 7}}, 1).at(7), ports);
  EXPECT_EQ(run({{4, 6}}, 1).at(6), ports + 2 * wire_time(kRate / 2));
  EXPECT_EQ(run({{1, 6}}, 1).at(6), ports + 2 * wire_time(kRate / 2) + 2 * wire_time(kRate / 4));
  std::uint64_t passed = 0;
  for (const auto& trunk : switch_->trunk_counts()) {
    passed += trunk.counts.forwarded;
    if (trunk.at.level == 2 && trunk.at.up && trunk.at.first_place == 0) {
      EXPECT_EQ(trunk.at.last_place, 3u);
      EXPECT_EQ(trunk.counts.forwarded, 1u);
    }
  }
  EXPECT_EQ(passed, 2u + 4);
}

TEST_F(SwitchTrunksTest, PassOnWhatAnImpairedLinkHarms) {
  build(4, pairs(kRate));
  Impairments impairments;
  impairments.duplicate = 0.2;
  impairments.reorder = 0.2;
  impairments.corrupt = 0.2;
  impairments.loss = 0.1;
  switch_->set_impairments(impairments);
  run({{0, 2}, {3, 1}}, 300);
  SwitchPortCounts sum;
  for (std::uint16_t port = 0; port < 4; ++port) add_counters(sum, switch_->counts(port));
  EXPECT_GT(sum.duplicated, 0u);
  EXPECT_GT(sum.dropped_loss, 0u);
  EXPECT_EQ(got_[2] + got_[1], 600 + sum.duplicated - sum.dropped_loss);
}

TEST_F(SwitchTrunksTest, FreeWhatIsInside) {
  build(4, pairs(kRate / 100));
  poll();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(send(0, {.to = 2, .bytes = kBytes}));
  for (int i = 0; i < 20; ++i) {
    clock_.advance(wire_time(kRate));
    poll();
  }
}

}  // namespace
}  // namespace gradcube::dataplane
