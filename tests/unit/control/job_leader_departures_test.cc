// A leader whose trainers leave in order.

#include "control/jobs/departures.h"
#include "tests/unit/control/job_leader_fixture.h"

namespace gradcube::control {
namespace {

Leave in_order(LaneNumbers submitted) { return {"it left", false, 0, std::move(submitted)}; }

TEST_F(JobLeaderTest, GoesOnWithoutATrainerThatLeavesInOrder) {
  run();
  EXPECT_TRUE(hear(1, in_order({4, 0})).empty());
  const JobActions told = wait(timing_.repeat);
  EXPECT_EQ(asked<Left>(told), (Servers{0, 1, 2})) << "its own daemon, too: it need not repeat it";
  EXPECT_EQ(first<Left>(told).departures, (std::vector<Departure>{{1, 0, "it left", {4, 0}}}));
  EXPECT_EQ(leader_.phase(), Phase::running);
  hear(1, in_order({4, 0}));
  hear(0, Noted{1});
  hear(1, Noted{1});
  EXPECT_EQ(asked<Left>(wait(timing_.repeat)), Servers{2}) << "who has not answered";
  hear(2, Noted{1});
  EXPECT_EQ(asked<Left>(wait(timing_.run_on)), Servers{});
}

TEST_F(JobLeaderTest, EndsWithTheLastTrainerThatLeavesInOrder) {
  run();
  hear(1, in_order({4, 0}));
  hear(2, in_order({3, 0}));
  EXPECT_EQ(asked<Hold>(hear(0, in_order({5, 0}))).size(), 3u);
  hear(0, held(0, {5, 0}, {3, 0}, {}, {}));
  hear(1, held(0, {4, 0}, {3, 0}, {}, {}));
  EXPECT_EQ(first<Abort>(hear(2, held(0, {3, 0}, {3, 0}, {}, {}))).common, (LaneNumbers{3, 0}));
}

TEST_F(JobLeaderTest, StopsWhereATrainerDiesAfterAnotherHasLeft) {
  run();
  hear(1, in_order({4, 0}));
  EXPECT_EQ(first<Hold>(hear(2, Leave{"it died", true})).why, "it died");
}

TEST_F(JobLeaderTest, FailsWhatATrainerThatHasLeftHasNotSubmitted) {
  run();
  hear(1, in_order({4, 0}));
  wait(timing_.repeat);
  const std::string why = "collective 5 needs the trainer that left";
  hear(0, Disagree{0, {0, 5, -6, why, Disagreement::Cause::departure}});
  all(Counts{0, 7, {4, 0}, {}});
  hear(0, held(0, {5, 0}, {4, 0}, {}, {}));
  hear(1, held(0, {4, 0}, {4, 0}, {}, {}));
  const JobCut cut = first<Reset>(hear(2, held(0, {4, 0}, {4, 0}, {}, {}))).cut;
  EXPECT_EQ(cut.code, -6);
  EXPECT_EQ(cut.done, (LaneNumbers{4, 0}));
  EXPECT_EQ(cut.failed, (LaneNumbers{5, 0}));
  EXPECT_EQ(cut.text, why + "; failed: collective 5 of lane 0");
  all(Armed{1});
  all(Started{1});
  EXPECT_EQ(asked<Left>(wait(timing_.repeat)).size(), 3u) << "nobody has answered yet";
}

TEST_F(JobLeaderTest, WaitsForTheOthersOfAServerWhoseTrainerHasSubmittedAllAndLeaves) {
  run(2);
  hear(0, Disagree{0, {0, 5, 3, "x"}});
  hear(0, Counts{0, 7, {5, 0}, {}});
  hear(2, Counts{0, 7, {5, 0}, {}});
  EXPECT_TRUE(hear(1, Counts{0, 7, {2, 0}, {}}).empty());
  EXPECT_TRUE(hear(1, in_order({5, 0})).empty()) << "the other has submitted two";
  EXPECT_TRUE(hear(1, Counts{0, 7, {3, 0}, {}}).empty());
  EXPECT_EQ(asked<Hold>(hear(1, Counts{0, 7, {4, 0}, {}})), (Servers{0, 1, 2}));
}

TEST_F(JobLeaderTest, DoesNotWaitForWhatATrainerThatHasLeftHasNotSubmitted) {
  for (const bool leaves_before : {false, true}) {
    run(2);
    if (leaves_before) hear(1, in_order({3, 0}));
    hear(0, Disagree{0, {0, 5, 3, "x"}});
    hear(0, Counts{0, 7, {5, 0}, {}});
    hear(1, Counts{0, 7, {2, 0}, {}});
    EXPECT_TRUE(hear(2, Counts{0, 7, {3, 0}, {}}).empty());
    if (!leaves_before) {
      EXPECT_TRUE(hear(1, in_order({3, 0})).empty()) << "the other has submitted two";
    }
    EXPECT_EQ(asked<Hold>(hear(1, Counts{0, 7, {3, 0}, {}})), (Servers{0, 1, 2}));
  }
}

TEST_F(JobLeaderTest, WaitsForNothingMoreWhereNoTrainerIsLeft) {
  run(2);
  hear(0, Disagree{0, {0, 5, 3, "x"}});
  hear(0, Counts{0, 7, {5, 0}, {}});
  hear(2, Counts{0, 7, {5, 0}, {}});
  EXPECT_TRUE(hear(1, in_order({4, 0})).empty());
  EXPECT_EQ(asked<Hold>(hear(1, Leave{"it left", false, 1, LaneNumbers{4, 0}})).size(), 3u);
}

TEST_F(JobLeaderTest, TellsManyDeparturesInParts) {
  run(16);
  for (std::uint32_t local = 0; local < 10; ++local) {
    hear(1, Leave{"it left", false, local, LaneNumbers{1, 1}});
  }
  hear(1, Leave{"nobody", false, 3, LaneNumbers{1, 1}});
  EXPECT_EQ(first<Left>(wait(timing_.repeat)).departures.size(), kMostDeparturesTold);
  const JobActions more = hear(2, Noted{kMostDeparturesTold});
  EXPECT_EQ(asked<Left>(more), Servers{2});
  EXPECT_EQ(first<Left>(more).first, kMostDeparturesTold);
  EXPECT_EQ(first<Left>(more).departures.size(), 2u);
}

// A server of a job of two lanes: one that has left had submitted two in lane 0 and one in lane 1.
class MissedTest : public testing::Test {
 protected:
  MissedTest() { departures_.note({1, 0, "it left", {2, 1}}); }
  LaneNumbers missed(const LaneNumbers& reached, const LaneNumbers& completed) {
    return departures_.missed(reached, completed, kRunOn, now_, [this] { return passed_; });
  }

  static constexpr Instant kRunOn = std::chrono::seconds(10);
  const LaneNumbers none_{0, 0};
  Instant now_ = std::chrono::seconds(1'000);
  std::uint64_t passed_ = 7;  // segments
  Departures departures_;
};

TEST_F(MissedTest, IsTheFirstBeyondWhatOneThatHasLeftHasSubmitted) {
  EXPECT_EQ(missed({2, 1}, {2, 1}), none_);
  EXPECT_EQ(missed({4, 1}, {2, 1}), (LaneNumbers{3, 0}));
  EXPECT_EQ(missed({4, 2}, {2, 1}), (LaneNumbers{3, 2}));
}

TEST_F(MissedTest, IsTheFirstBeyondWhatAResetHasFailed) {
  EXPECT_EQ(missed({5, 1}, {5, 1}), none_);
  EXPECT_EQ(missed({7, 1}, {5, 1}), (LaneNumbers{6, 0}));
}

TEST_F(MissedTest, WaitsForWhatIsSharedInItsLaneHoweverLate) {
  EXPECT_EQ(missed({3, 0}, {1, 0}), none_);
  now_ += 100 * kRunOn;
  EXPECT_EQ(missed({3, 0}, {1, 0}), none_);
  EXPECT_EQ(missed({3, 0}, {2, 0}), (LaneNumbers{3, 0}));
}

TEST_F(MissedTest, WaitsForWhatIsSharedInOtherLanesAsLongAsTrainersComeFurther) {
  EXPECT_EQ(missed({1, 2}, {0, 1}), none_);
  now_ += kRunOn - Instant(1);
  EXPECT_EQ(missed({1, 2}, {0, 1}), none_);
  EXPECT_EQ(missed({2, 2}, {0, 1}), none_) << "one more is submitted";
  now_ += kRunOn - Instant(1);
  EXPECT_EQ(missed({2, 2}, {1, 1}), none_) << "one more has ended";
  for (unsigned i = 0; i < 5; ++i, ++passed_) {
    now_ += kRunOn;
    EXPECT_EQ(missed({2, 2}, {1, 1}), none_) << "segments pass, as far as is known";
  }
  --passed_;
  now_ += kRunOn - Instant(1);
  EXPECT_EQ(missed({2, 2}, {1, 1}), none_);
  now_ += Instant(1);
  EXPECT_EQ(missed({2, 2}, {1, 1}), (LaneNumbers{0, 2}));
  EXPECT_EQ(missed({2, 2}, {2, 1}), (LaneNumbers{0, 2})) << "and not at all where all has ended";
}

}  // namespace
}  // namespace gradcube::control
