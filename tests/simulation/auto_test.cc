// A lane that chooses among plans: collectives of different sizes take different ones, side by side
// in one lane, and end in their order with the bits of the plan that each runs.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "control/plan/auto_plans.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

constexpr std::uint64_t kPlace = 1 << 19;  // bytes of the heap for each collective
// A message costs so much that the sizes below take at least two plans.
constexpr const char* kAlgorithm = "auto:20us,5us";

class AutoLane : public testing::Test {
 protected:
  explicit AutoLane(const std::string& loss = "0")
      : cluster_(settings_of({{"topology", "bcube:3,2"}, {"rate", "1gbit"}, {"loss", loss}})),
        choice_(control::make_choice(kAlgorithm, cluster_.plan().topology(),
                                     control::Placement::all(cluster_.plan().topology()), "test")),
        trainers_(cluster_.join_all("auto", 9 * kPlace, kAlgorithm)) {}

  static Collective order(std::size_t place, std::uint64_t count,
                          control::CollectiveKind kind = control::CollectiveKind::all_reduce) {
    Collective collective;
    collective.kind = kind;
    collective.offset += place * kPlace;
    collective.count = count;
    collective.salt = place;
    return collective;
  }

  const control::Plan& plan_of(const Collective& collective) const {
    return choice_.plan_of(collective.kind, collective.bytes());
  }

  void submit_all(const std::vector<Collective>& orders) {
    for (const auto& trainer : trainers_) {
      for (const Collective& each : orders) fill_and_submit(*trainer, each);
    }
  }

  void expect_all_right(const std::vector<Collective>& orders) {
    EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers_); }, 60 * kSecond));
    for (const auto& trainer : trainers_) {
      std::vector<std::uint64_t> requests;
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, 0);
        requests.push_back(completion.request);
      }
      EXPECT_EQ(requests.size(), orders.size());
      EXPECT_TRUE(std::is_sorted(requests.begin(), requests.end())) << "in their order";
    }
    for (const Collective& each : orders) expect_right(plan_of(each), trainers_, each);
  }

  SimulatedCluster cluster_;
  control::PlanChoice choice_;
  Trainers trainers_;
};

class AutoLaneWithLosses : public AutoLane {
 protected:
  AutoLaneWithLosses() : AutoLane("0.02") {}
};

const std::vector<std::uint64_t> kCounts = {1, 100'000, 16, 300, 60'000, 0, 4'000, 9'000};

std::vector<std::string> algorithms_of(const control::PlanChoice& choice) {
  std::set<std::string> names;
  for (const std::uint64_t count : kCounts) {
    names.insert(choice.plan_of(control::CollectiveKind::all_reduce, 4 * count).algorithm());
  }
  return {names.begin(), names.end()};
}

TEST_F(AutoLane, RunsCollectivesOfDifferentPlansSideBySide) {
  ASSERT_GT(algorithms_of(choice_).size(), 1u);
  std::vector<Collective> orders;
  for (const std::uint64_t count : kCounts) orders.push_back(order(orders.size(), count));
  submit_all(orders);
  expect_all_right(orders);
  leave_all(cluster_, trainers_);
}

TEST_F(AutoLaneWithLosses, RecoversInEveryPlanAndKind) {
  for (const control::CollectiveKind kind : control::kCollectiveKinds) {
    std::vector<Collective> orders;
    for (const std::uint64_t count : kCounts) {
      const bool is_barrier = kind == control::CollectiveKind::barrier;
      const std::uint64_t whole = is_barrier ? 0 : count / 9 * 9;
      orders.push_back(order(orders.size(), whole, kind));
    }
    submit_all(orders);
    expect_all_right(orders);
  }
  leave_all(cluster_, trainers_);
}

// So many that those which another plan runs fill an executor's room for collectives in flight.
TEST_F(AutoLane, TakesMoreCollectivesThanAPlanHasInFlight) {
  std::vector<Collective> orders;
  for (unsigned i = 0; i < 300; ++i) orders.push_back(order(i % 8, i % 97 == 5 ? 60'000 : 1));
  for (const auto& trainer : trainers_) {
    for (const Collective& each : orders) fill_and_submit(*trainer, each);
  }
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers_); }, 60 * kSecond));
  for (const auto& trainer : trainers_) {
    const auto completions = trainer->take_completions();
    EXPECT_EQ(completions.size(), orders.size());
    for (const shared::Completion& completion : completions) EXPECT_EQ(completion.code, 0);
  }
  leave_all(cluster_, trainers_);
}

// Each side runs another plan, and so sends what the other does not expect.
TEST_F(AutoLane, FindsADisagreementAboutTheSizeThatMakesTrainersTakeDifferentPlans) {
  const Collective small = order(1, 1), large = order(1, 100'000);
  ASSERT_NE(plan_of(small).algorithm(), plan_of(large).algorithm());
  for (const unsigned different : {0U, 4U, 8U}) {
    for (const bool is_larger : {true, false}) {
      for (const auto& trainer : trainers_) {
        fill_and_submit(*trainer, order(0, 4'000));
        const bool takes_large = (trainer->rank() == different) == is_larger;
        fill_and_submit(*trainer, takes_large ? large : small);
      }
      EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers_); }, 2 * kSecond));
      for (const auto& trainer : trainers_) {
        const auto completions = trainer->take_completions();
        ASSERT_EQ(completions.size(), 2u);
        EXPECT_EQ(completions[0].code, 0);
        EXPECT_EQ(completions[1].code, GRADCUBE_EMISMATCH);
      }
      const std::string message = cluster_.told(*trainers_[0]).back().notice.text;
      EXPECT_NE(message.find("100000 float32 sum"), std::string::npos) << message;
      EXPECT_NE(message.find(" of "), std::string::npos) << message;
    }
  }
  submit_all({order(0, 4'000), small, order(2, 100'000)});
  expect_all_right({order(0, 4'000), small, order(2, 100'000)});
  leave_all(cluster_, trainers_);
}

}  // namespace
}  // namespace gradcube::simulation
