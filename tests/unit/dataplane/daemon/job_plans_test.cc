#include "dataplane/daemon/engines/job_plans.h"

#include <gtest/gtest.h>
#include <string>

#include "control/plan/auto_plans.h"

namespace gradcube::dataplane {
namespace {

const control::Topology kStar = control::parse_topology("star:4", "test");

std::string algorithm_of(const std::string& asked, unsigned servers_per_core) {
  control::JobOptions options;
  options.lanes.resize(1);
  options.lanes[0].algorithm = asked;
  return completed(options, kStar, servers_per_core).lanes.at(0).algorithm;
}

TEST(JobPlans, CompleteWhatATrainerLeftOut) {
  const control::JobOptions options = completed({}, kStar, 1);
  ASSERT_EQ(options.lanes.size(), 1u);
  EXPECT_EQ(options.lanes[0].algorithm, "recursive_doubling");
  const control::Topology rated = kStar.with_rates({1'000'000'000});
  EXPECT_EQ(completed({}, rated, 1).lanes[0].algorithm, "bml");
  EXPECT_EQ(options.members, (std::vector<bcube::ServerId>{0, 1, 2, 3}));
}

TEST(JobPlans, OfAJobThatNamesNoMembersAreOnThoseThatTakeTrainers) {
  const control::JobOptions on_star = completed({}, kStar, 1, {2});
  EXPECT_EQ(on_star.members, (std::vector<bcube::ServerId>{0, 1, 3}));
  EXPECT_EQ(on_star.lanes[0].algorithm, "recursive_doubling")
      << "under one switch any servers form a grid";
  const control::Topology nine = control::parse_topology("bcube:3,2", "test");
  const control::JobOptions on_eight = completed({}, nine, 1, {8});
  EXPECT_EQ(on_eight.members.size(), 8u);
  EXPECT_NE(on_eight.lanes[0].algorithm, "recursive_doubling") << "which needs a grid";
  EXPECT_NO_THROW(PlanShelf().plans(on_eight, nine));
  control::JobOptions named;
  named.members = {0, 1};
  EXPECT_EQ(completed(named, nine, 1, {8}).members, named.members);
}

TEST(JobPlans, SayOfAutoHowManyServersShareACore) {
  EXPECT_EQ(algorithm_of("auto", 1), "auto");
  EXPECT_EQ(algorithm_of("auto", 2), control::completed_auto("auto", 2));
  EXPECT_EQ(algorithm_of("auto:1us,2us", 2), "auto:1us,2us");
  EXPECT_EQ(algorithm_of("ring", 2), "ring");
}

TEST(JobPlans, AreMadeOnceForAllWhoAskAlikeAndKeptNoLonger) {
  PlanShelf shelf;
  control::JobOptions two;
  two.lanes.resize(2);
  const control::JobOptions options = completed(two, kStar, 1);
  std::weak_ptr<const control::PlanChoice> choice;
  {
    const LanePlans first = shelf.plans(options, kStar);
    const LanePlans second = shelf.plans(options, kStar);
    EXPECT_EQ(first[0].choice, first[1].choice);
    EXPECT_EQ(first[0].choice, second[1].choice);
    choice = first[0].choice;
    control::JobOptions other = options;
    other.lanes[1].algorithm = "ring";
    EXPECT_EQ(shelf.plans(other, kStar)[0].choice, first[0].choice);
    EXPECT_NE(shelf.plans(other, kStar)[1].choice, first[0].choice);
    other = options;
    other.members.pop_back();
    EXPECT_NE(shelf.plans(other, kStar)[0].choice, first[0].choice);
    other = options;
    other.trainers = 2;
    EXPECT_NE(shelf.plans(other, kStar)[0].choice, first[0].choice);
  }
  EXPECT_TRUE(choice.expired());
  EXPECT_EQ(shelf.plans(options, kStar)[0].choice->plans(), 2u);
}

TEST(JobPlans, AreThoseOfTheCompletedAlgorithm) {
  control::JobOptions options;
  options.lanes.resize(1);
  options.lanes[0].algorithm = "auto";
  const LanePlans plans = PlanShelf().plans(completed(options, kStar, 4), kStar);
  ASSERT_EQ(plans.size(), 1u);
  const auto expected =
      control::make_choice("auto:1us,40us/4", kStar, control::Placement::all(kStar), "test");
  EXPECT_EQ(plans[0].choice->plans(), expected.plans());
}

}  // namespace
}  // namespace gradcube::dataplane
