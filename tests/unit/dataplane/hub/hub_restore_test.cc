// What a server owns of a hub, as it is saved, and how another hub goes on from there.

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/unit/control/plans.h"
#include "tests/unit/dataplane/hub/hub_places.h"
#include "tests/unit/dataplane/hub/hub_run.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using aggregation::OptimizerRule;

constexpr unsigned kBefore = 3;  // rounds with gradients
constexpr unsigned kAfter = 2;

// What nobody must read.
constexpr float kForeign = 999;

// A rank's part of a key: everything else is foreign.
struct SavedKey {
  std::vector<float> weights;
  std::array<std::vector<float>, kHubArrays> arrays;
};

std::vector<SavedKey> save_owned(const HubRun& run, unsigned rank) {
  std::vector<SavedKey> saved(run.model().keys().size());
  for (std::uint32_t key = 0; key < saved.size(); ++key) {
    saved[key].weights.assign(run.model().keys()[key].elements, kForeign);
    saved[key].arrays.fill(saved[key].weights);
  }
  run.for_each_owned(rank, [&](const HubOwnedRange& range) {
    SavedKey& of = saved[range.key];
    const std::vector<float> weights = run.weights(rank, range.key);
    for (std::uint64_t i = 0; i < range.elements; ++i) {
      const std::uint64_t element = range.first_element + i;
      of.weights[element] = weights[element];
      for (std::size_t a = 0; a < kHubArrays; ++a) {
        if (range.arrays[a] != nullptr) of.arrays[a][element] = range.arrays[a][i];
      }
    }
  });
  return saved;
}

void expect_goes_on(const HubRunSettings& settings, const std::string& where) {
  HubRun whole(settings);
  whole.run(1 + kBefore + kAfter, small_number);
  HubRun before(settings);
  before.run(1 + kBefore, small_number);
  std::vector<std::vector<SavedKey>> saved;
  for (unsigned rank = 0; rank < before.ranks(); ++rank) saved.push_back(save_owned(before, rank));

  HubRun after(settings);
  after.kind = [](unsigned, unsigned round) {
    return round == 0 ? PushKind::restored : PushKind::gradients;
  };
  after.steps = [](unsigned) { return kBefore; };
  after.arrays = [&](unsigned rank, std::uint32_t key) {
    std::array<const float*, kHubArrays> arrays{};
    for (std::size_t a = 0; a < kHubArrays; ++a) arrays[a] = saved[rank][key].arrays[a].data();
    return arrays;
  };
  after.run(1 + kAfter, [&](unsigned rank, unsigned trainer, std::uint32_t key,
                            std::uint64_t element, unsigned round) {
    if (round != 0) return small_number(rank, trainer, key, element, kBefore + round);
    return trainer == 0 ? saved[rank][key].weights[element] : kForeign;
  });
  EXPECT_EQ(after.refused(), 0U) << where;
  for (std::uint32_t key = 0; key < after.model().keys().size(); ++key) {
    for (unsigned rank = 0; rank < after.ranks(); ++rank) {
      EXPECT_EQ(after.ended(rank, key), 1 + kAfter) << where;
      EXPECT_EQ(after.weights(rank, key), whole.weights(rank, key))
          << where << ", rank " << rank << ", key " << key;
    }
  }
}

TEST(HubRestore, GoesOnAsIfItHadNeverEndedFromEachServersOwnPart) {
  for (const Place& place : kPlaces) {
    for (const DataType type : {DataType::float32, DataType::float16}) {
      expect_goes_on({.plan = control::plan_of(place.algorithm, place.topology),
                      .keys = keys_of(type),
                      .optimizer = settings_of(OptimizerRule::adamw)},
                     place.text());
    }
  }
}

TEST(HubRestore, TakesTheFirstTrainersPartWithAnyOptimizer) {
  for (const OptimizerRule rule :
       {OptimizerRule::sgd, OptimizerRule::momentum, OptimizerRule::adam}) {
    expect_goes_on({.plan = control::plan_of("bml", "bcube:3,2"),
                    .keys = keys_of(DataType::bfloat16),
                    .optimizer = settings_of(rule),
                    .trainers = 2,
                    .lcores = 2},
                   std::string(aggregation::optimizer_rule_name(rule)));
  }
}

TEST(HubRestore, OwnsEachElementOnceOverAllServers) {
  for (const Place& place : kPlaces) {
    const HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                      .keys = keys_of(DataType::float32),
                      .optimizer = settings_of(OptimizerRule::momentum)});
    std::vector<std::vector<unsigned>> owners;
    for (const auto& key : run.model().keys()) owners.emplace_back(key.elements);
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      run.for_each_owned(rank, [&](const HubOwnedRange& range) {
        for (std::uint64_t i = 0; i < range.elements; ++i) {
          ++owners[range.key][range.first_element + i];
        }
      });
    }
    for (std::size_t key = 0; key < owners.size(); ++key) {
      EXPECT_EQ(owners[key], std::vector<unsigned>(owners[key].size(), 1)) << place.text();
    }
  }
}

void expect_disagreement(const std::function<void(HubRun&)>& prepare) {
  HubRun run({.plan = control::plan_of("mesh", "star:3"),
              .keys = keys_of(DataType::float32),
              .optimizer = settings_of(OptimizerRule::sgd)});
  prepare(run);
  run.run(1, small_number);
  EXPECT_TRUE(run.disagrees(0) || run.disagrees(1) || run.disagrees(2));
  for (unsigned rank = 0; rank < run.ranks(); ++rank) EXPECT_EQ(run.ended(rank, 0), 0U);
}

TEST(HubRestore, IsNotMixedWithWeightsOfAnotherServer) {
  expect_disagreement([](HubRun& run) {
    run.kind = [](unsigned rank, unsigned) {
      return rank == 1 ? PushKind::weights : PushKind::restored;
    };
  });
}

TEST(HubRestore, IsOfTheSameStepsOnAllServers) {
  expect_disagreement([](HubRun& run) {
    run.kind = [](unsigned, unsigned) { return PushKind::restored; };
    run.steps = [](unsigned rank) { return rank == 1 ? 7U : 8U; };
  });
}

}  // namespace
}  // namespace gradcube::dataplane
