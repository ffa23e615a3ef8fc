// Trainers that push a key differently: its round ends nowhere, and those who meet it are told.

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/unit/control/plans.h"
#include "tests/unit/dataplane/hub/hub_places.h"
#include "tests/unit/dataplane/hub/hub_run.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using aggregation::OptimizerRule;

constexpr std::uint64_t kRuns = 8;  // of each plan, in different orders

HubRun run_on(const Place& place, std::uint64_t seed) {
  return HubRun({.plan = control::plan_of(place.algorithm, place.topology),
                 .keys = keys_of(DataType::float32),
                 .optimizer = settings_of(OptimizerRule::sgd),
                 .accumulates = true,
                 .seed = seed});
}

bool any_disagrees(const HubRun& run) {
  for (unsigned rank = 0; rank < run.ranks(); ++rank) {
    if (run.disagrees(rank)) return true;
  }
  return false;
}

// The round of the weights has ended, and no other.
void expect_stopped(const HubRun& run, const std::string& where) {
  EXPECT_TRUE(any_disagrees(run)) << where;
  for (unsigned rank = 0; rank < run.ranks(); ++rank) {
    for (std::uint32_t key = 0; key < run.model().keys().size(); ++key) {
      EXPECT_EQ(run.ended(rank, key), 1U) << where << ", rank " << rank << ", key " << key;
    }
  }
}

// Behind the weights rank 1 pushes another kind than the others.
void expect_no_round_of(PushKind one, PushKind others) {
  const std::uint64_t first = protocol::test_seed(20261124);
  for (const Place& place : kPlaces) {
    for (std::uint64_t seed = first; seed < first + kRuns; ++seed) {
      SCOPED_TRACE(protocol::seed_trace(seed));
      HubRun run = run_on(place, seed);
      run.kind = [&](unsigned rank, unsigned round) {
        return round == 0 ? PushKind::weights : (rank == 1 && round == 1 ? one : others);
      };
      run.run(3, small_number);
      expect_stopped(run, place.text());
    }
  }
}

TEST(HubDisagreement, OfWeightsAndGradientsEndsNoRound) {
  expect_no_round_of(PushKind::weights, PushKind::gradients);
}

TEST(HubDisagreement, OfWhatIsAccumulatedAndWhatIsAppliedEndsNoRound) {
  expect_no_round_of(PushKind::applied, PushKind::accumulated);
  expect_no_round_of(PushKind::accumulated, PushKind::applied);
  expect_no_round_of(PushKind::accumulated, PushKind::gradients);
}

TEST(HubDisagreement, OfLearningRatesEndsNoRound) {
  const std::uint64_t first = protocol::test_seed(20261124);
  for (const Place& place : kPlaces) {
    for (std::uint64_t seed = first; seed < first + kRuns; ++seed) {
      SCOPED_TRACE(protocol::seed_trace(seed));
      HubRun run = run_on(place, seed);
      run.rate = [](unsigned rank, unsigned round) {
        return rank == 1 && round == 1 ? 0.25000001 : 0.25;
      };
      run.run(3, small_number);
      expect_stopped(run, place.text());
    }
  }
}

TEST(HubDisagreement, OfLearningRatesIsFoundWhereContributionsWithDifferentOnesCome) {
  const std::uint64_t first = protocol::test_seed(20261124);
  for (const Place place : {Place{"mesh", "star:5"}, Place{"ps", "star:4"}}) {
    unsigned met = 0;
    for (std::uint64_t seed = first; seed < first + kRuns; ++seed) {
      SCOPED_TRACE(protocol::seed_trace(seed));
      HubRun run = run_on(place, seed);
      run.rate = [](unsigned rank, unsigned round) { return rank == 1 && round == 1 ? 0.5 : 0.25; };
      std::map<std::pair<const HubExchange*, std::uint32_t>, std::set<std::uint32_t>> rates;
      run.before = [&](const HubRun::Arrival& arrival) {
        const HubLabel& label = arrival.label;
        if (arrival.from.stage != control::Stage::aggregation || label.round != 2) return;
        rates[{&arrival.exchange, label.chunk}].insert(label.digest);
      };
      run.run(3, small_number);
      for (const auto& [where, labelled] : rates) {
        if (labelled.size() < 2) continue;
        ++met;
        EXPECT_TRUE(where.first->disagreement().has_value()) << place.text();
      }
    }
    EXPECT_GT(met, 0U) << place.text();
  }
}

TEST(HubDisagreement, IsOfTheKeyThatIsPushedDifferently) {
  HubRun run = run_on({"mesh", "star:5"}, 1);
  run.rate = [](unsigned rank, unsigned round) { return rank == 2 && round == 1 ? 0.5 : 0.25; };
  run.run(2, small_number,
          [](unsigned, std::uint32_t key, unsigned round) { return round == 0 || key == 2; });
  EXPECT_TRUE(any_disagrees(run));
  for (unsigned rank = 0; rank < run.ranks(); ++rank) {
    EXPECT_EQ(run.disagreement(rank).value_or(2), 2U);
  }
}

// Numbers that compare equal are the same rate, whatever their bits are.
TEST(HubDisagreement, IsNoneOfTwoZeros) {
  HubRun run = run_on({"mesh", "star:5"}, 1);
  run.rate = [](unsigned rank, unsigned) { return rank == 1 ? -0.0 : 0.0; };
  run.run(3, small_number);
  EXPECT_FALSE(any_disagrees(run));
  for (unsigned rank = 0; rank < run.ranks(); ++rank) EXPECT_EQ(run.ended(rank, 0), 3U);
}

// Weights are pushed without a rate.
TEST(HubDisagreement, IsNoneOfTheRatesOfWeights) {
  HubRun run = run_on({"mesh", "star:5"}, 1);
  run.rate = [](unsigned rank, unsigned round) { return round == 0 ? rank : 0.25; };
  run.run(3, small_number);
  EXPECT_FALSE(any_disagrees(run));
  for (unsigned rank = 0; rank < run.ranks(); ++rank) EXPECT_EQ(run.ended(rank, 0), 3U);
}

}  // namespace
}  // namespace gradcube::dataplane
