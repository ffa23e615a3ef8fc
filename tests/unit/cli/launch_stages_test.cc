#include "cli/launch/launch_stages.h"

#include <chrono>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace gradcube::cli {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr ProcessEnd kWell{.by_signal = false, .number = 0};
constexpr ProcessEnd kBadly{.by_signal = false, .number = 7};
constexpr ProcessEnd kTerminated{.by_signal = true, .number = SIGTERM};

class LaunchStagesTest : public testing::Test {
 protected:
  // The process and all of its group.
  void ends(std::size_t process, ProcessEnd end) {
    stages_.on_end(process, end, now_);
    stages_.on_group_gone(process);
  }

  std::vector<std::pair<std::size_t, int>> orders() {
    std::vector<std::pair<std::size_t, int>> all;
    for (const auto& order : stages_.take_orders()) all.emplace_back(order.process, order.signal);
    return all;
  }

  LaunchStages::Time now_{seconds(1000)};
  LaunchStages stages_{3, seconds(5)};
};

TEST_F(LaunchStagesTest, AllThatEndWellNeedNoSignal) {
  EXPECT_FALSE(stages_.all_gone());
  for (std::size_t i : {2, 0, 1}) {
    EXPECT_FALSE(stages_.all_gone());
    ends(i, kWell);
  }
  EXPECT_TRUE(stages_.all_gone());
  EXPECT_THAT(orders(), IsEmpty());
  EXPECT_EQ(stages_.exit_code(), 0);
  EXPECT_FALSE(stages_.first_failure());
  EXPECT_FALSE(stages_.deadline());
}

TEST_F(LaunchStagesTest, TheFirstFailureEndsTheOthersAndIsTheResult) {
  ends(0, kWell);
  ends(1, kBadly);
  EXPECT_THAT(orders(), ElementsAre(Pair(2, SIGTERM)));
  EXPECT_THAT(orders(), IsEmpty()) << "a signal is sent once";
  ends(2, kTerminated);
  EXPECT_TRUE(stages_.all_gone());
  EXPECT_EQ(stages_.first_failure(), 1u);
  EXPECT_EQ(stages_.exit_code(), 7);
}

TEST(LaunchStagesAlone, AFailureEndsNoOthers) {
  LaunchStages stages(2, seconds(5), /*each_alone=*/true);
  stages.on_end(0, kBadly, LaunchStages::Time(seconds(1)));
  stages.on_group_gone(0);
  EXPECT_THAT(stages.take_orders(), IsEmpty());
  EXPECT_EQ(stages.first_failure(), 0u);
}

TEST_F(LaunchStagesTest, ASignalIsAFailureWithAShellsExitCode) {
  ends(2, {.by_signal = true, .number = SIGSEGV});
  EXPECT_EQ(stages_.first_failure(), 2u);
  EXPECT_EQ(stages_.exit_code(), 128 + SIGSEGV);
}

TEST_F(LaunchStagesTest, ALaterFailureChangesNothing) {
  ends(1, kBadly);
  ends(0, {.by_signal = false, .number = 1});
  EXPECT_EQ(stages_.first_failure(), 1u);
  EXPECT_EQ(stages_.exit_code(), 7);
}

TEST_F(LaunchStagesTest, WhoDoesNotEndInTimeIsKilled) {
  ends(0, kBadly);
  orders();
  EXPECT_EQ(stages_.deadline(), now_ + seconds(5));
  ends(1, kTerminated);
  now_ += seconds(5) - std::chrono::nanoseconds(1);
  stages_.on_time(now_);
  EXPECT_THAT(orders(), IsEmpty());
  now_ += std::chrono::nanoseconds(1);
  stages_.on_time(now_);
  EXPECT_THAT(orders(), ElementsAre(Pair(2, SIGKILL)));
  EXPECT_TRUE(stages_.outstayed(2));
  EXPECT_FALSE(stages_.outstayed(1));
  EXPECT_FALSE(stages_.all_gone());
  ends(2, {.by_signal = true, .number = SIGKILL});
  EXPECT_TRUE(stages_.all_gone());
  EXPECT_EQ(stages_.exit_code(), 7);
}

TEST_F(LaunchStagesTest, AnInterruptEndsAllAndIsNoFailure) {
  stages_.on_interrupt(now_);
  EXPECT_THAT(orders(), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM), Pair(2, SIGTERM)));
  for (std::size_t i : {0, 1, 2}) ends(i, i == 1 ? kBadly : kTerminated);
  EXPECT_TRUE(stages_.all_gone());
  EXPECT_FALSE(stages_.first_failure());
  EXPECT_EQ(stages_.exit_code(), 0);
}

TEST_F(LaunchStagesTest, ASecondInterruptKillsAtOnce) {
  stages_.on_interrupt(now_);
  ends(0, kTerminated);
  orders();
  stages_.on_interrupt(now_);
  EXPECT_THAT(orders(), ElementsAre(Pair(1, SIGKILL), Pair(2, SIGKILL)));
  EXPECT_FALSE(stages_.outstayed(1)) << "it had no time";
}

TEST_F(LaunchStagesTest, AnInterruptAfterAFailureKillsAtOnce) {
  ends(0, kBadly);
  orders();
  stages_.on_interrupt(now_);
  EXPECT_THAT(orders(), ElementsAre(Pair(1, SIGKILL), Pair(2, SIGKILL)));
  EXPECT_EQ(stages_.exit_code(), 7);
}

TEST_F(LaunchStagesTest, StoppingAgainIsNoImpatience) {
  stages_.stop(now_);
  orders();
  stages_.stop(now_);
  EXPECT_THAT(orders(), IsEmpty());
}

TEST_F(LaunchStagesTest, WhatAProcessLeavesBehindIsEndedWithoutTheOthers) {
  stages_.on_end(1, kWell, now_);
  EXPECT_TRUE(stages_.leaves_others(1));
  EXPECT_THAT(orders(), ElementsAre(Pair(1, SIGTERM)));
  now_ += seconds(5);
  stages_.on_time(now_);
  EXPECT_THAT(orders(), ElementsAre(Pair(1, SIGKILL)));
  stages_.on_group_gone(1);
  EXPECT_FALSE(stages_.leaves_others(1));
  EXPECT_FALSE(stages_.first_failure());
  EXPECT_FALSE(stages_.deadline());
}

TEST_F(LaunchStagesTest, TheRestOfAGroupIsEndedWithTheProcessThatFailed) {
  stages_.on_end(1, kBadly, now_);
  EXPECT_THAT(orders(), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM), Pair(2, SIGTERM)));
}

TEST_F(LaunchStagesTest, DoNotWaitForEverForAGroupThatSigkillDoesNotEnd) {
  ends(0, kWell);
  ends(2, kWell);
  stages_.on_end(1, kWell, now_);
  now_ += seconds(5);
  stages_.on_time(now_);
  EXPECT_FALSE(stages_.all_gone());
  ASSERT_TRUE(stages_.deadline());
  stages_.on_time(*stages_.deadline());
  EXPECT_TRUE(stages_.all_gone());
}

TEST_F(LaunchStagesTest, DoNotWaitForEverForAProcessThatSigkillDoesNotEnd) {
  ends(0, kBadly);
  ends(2, kTerminated);
  now_ += seconds(5);
  stages_.on_time(now_);
  EXPECT_THAT(orders(), ElementsAre(Pair(1, SIGTERM), Pair(1, SIGKILL)));
  ASSERT_TRUE(stages_.deadline());
  EXPECT_GT(*stages_.deadline(), now_);
  stages_.on_time(*stages_.deadline());
  EXPECT_TRUE(stages_.all_gone());
  EXPECT_EQ(stages_.end_of(1)->exit_code(), 128 + SIGKILL);
  EXPECT_EQ(stages_.exit_code(), 7);
}

}  // namespace
}  // namespace gradcube::cli
