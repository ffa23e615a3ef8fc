// A session whose leader engine runs some collectives alone, while the thread of another engine
// that runs the others sleeps, and lies behind.
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "dataplane/engine/session/session.h"
#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"

namespace gradcube::dataplane {
namespace {

// Of a BCube of two levels and no rate: long all-reduces run two threads, short ones the third.
constexpr unsigned kThreadOfLeader = 0;
constexpr unsigned kThreadElsewhere = 1;
constexpr unsigned kOfShort = 2;
constexpr std::uint64_t kShort = 250;
constexpr std::uint64_t kLong = 50'000;

class SessionLeaderTest : public testing::Test {
 protected:
  SessionLeaderTest() {
    const auto topology = control::parse_topology("bcube:2,2", "test");
    const auto all = control::Placement::all(topology);
    LeaderPart part;
    part.choice = std::make_shared<const control::PlanChoice>(control::make_choice(
        control::default_algorithm_of_jobs(topology, all), topology, all, "test"));
    part.runs = {true, false, true};
    part.runs_alone = {false, true};
    session_.set_leader_part(0, part);
    session_.set_attached(true);
  }

  // Whether the next collective was taken.
  bool submit(std::uint64_t count) {
    shared::Submission& submission = submission_entry(session_.region(), submitted_);
    submission = {};
    submission.request = ++submitted_;
    submission.offset = shared::kHeapOffset;
    submission.count = count;
    session_.region().header().submission_tail.store(submitted_);
    return session_.take() == Session::Take::taken;
  }
  // The leader engine has finished all up to this one.
  void finish(std::uint64_t number) {
    session_.report(0, kThreadOfLeader, number);
    session_.report(0, kOfShort, number);
  }
  void end(std::uint64_t number) {
    session_.complete_through(0, number, 0);
    session_.region().header().completion_head.store(number);
  }
  bool others_are_woken() {
    session_.wake_pollers();
    return others_.finish_wait();
  }

  Doorbell others_;
  Session session_{whole_region(1 << 20), -1, SessionShape{4, {3}}, {&others_}};
  std::uint64_t submitted_ = 0;
};

TEST_F(SessionLeaderTest, EndsWhatTheLeaderRunsAloneWithoutTheOtherEngines) {
  ASSERT_TRUE(submit(kShort));
  finish(1);
  EXPECT_EQ(session_.finished_by_all(0), 1u);
  ASSERT_TRUE(submit(kLong));
  finish(2);
  EXPECT_EQ(session_.finished_by_all(0), 0u) << "the other engine runs the second, too";
  ASSERT_TRUE(submit(kShort));
  finish(3);
  session_.report(0, kThreadElsewhere, 1);
  EXPECT_EQ(session_.finished_by_all(0), 1u);
  session_.report(0, kThreadElsewhere, 2);
  EXPECT_EQ(session_.finished_by_all(0), 3u) << "it does not run the third";
}

TEST_F(SessionLeaderTest, WakesTheOtherEnginesForWhatTheyRunAndElseOnceIn64) {
  unsigned woken = 0;
  const auto take_one = [&](std::uint64_t count) {
    others_.prepare_wait();
    ASSERT_TRUE(submit(count));
    woken += others_are_woken() ? 1 : 0;
    others_.prepare_wait();
    EXPECT_FALSE(others_are_woken()) << "they know already";
    finish(submitted_);
    session_.report(0, kThreadElsewhere, submitted_);
    end(submitted_);
  };
  for (int i = 0; i < 10; ++i) take_one(kShort);
  EXPECT_EQ(woken, 0u);
  for (int i = 0; i < 10; ++i) take_one(kLong);
  EXPECT_EQ(woken, 10u);
  for (std::uint64_t i = 0; i < 10 * Session::kMostBegun; ++i) take_one(kShort);
  EXPECT_EQ(woken, 20u);
}

TEST_F(SessionLeaderTest, KeepsARequestUntilTheOtherEnginesHavePassedIt) {
  for (std::uint64_t i = 0; i < Session::kMaxInFlight; ++i) {
    ASSERT_TRUE(submit(kShort));
    finish(submitted_);
    end(submitted_);
  }
  EXPECT_EQ(session_.completed(0), Session::kMaxInFlight);
  EXPECT_FALSE(submit(kShort)) << "it would take the first one's place";
  EXPECT_TRUE(session_.has_submission());
  session_.report(0, kThreadElsewhere, 1);
  EXPECT_EQ(session_.take(), Session::Take::taken);
  EXPECT_FALSE(submit(kShort));
  session_.set_attached(false);
  EXPECT_EQ(session_.take(), Session::Take::taken) << "no engine reads there any more";
}

}  // namespace
}  // namespace gradcube::dataplane
