// How the trainers of a hub with an aggregator save what it has, and load it into another one.

#include "control/checkpoint/hub_planes.h"

#include <algorithm>
#include <cstring>
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

constexpr unsigned kRoundsBefore = 3;  // rounds with gradients
constexpr unsigned kRoundsAfter = 2;
constexpr unsigned kHolder = 2;  // the rank whose trainer loads

HubRunSettings aggregated(DataType type, OptimizerRule rule, unsigned aggregators = 1) {
  return {.plan = aggregated_plan(aggregators, 4),
          .keys = keys_of(type),
          .optimizer = settings_of(rule),
          .aggregators = aggregators};
}

unsigned planes_of(const HubRunSettings& settings) {
  return control::hub_planes(settings.keys.front().type,
                             aggregation::optimizer_states(settings.optimizer.rule));
}

// Rounds 0 to kRoundsBefore have weights and gradients, then come the planes, the last one first,
// and then gradients again.
struct Saving {
  unsigned planes;

  unsigned first_after() const { return 1 + kRoundsBefore + planes; }
  PushKind kind(unsigned round) const {
    if (round == 0) return PushKind::weights;
    return round <= kRoundsBefore || round >= first_after() ? PushKind::gradients : PushKind::saved;
  }
  unsigned plane(unsigned round) const { return first_after() - 1 - round; }
  // The round that would have had these gradients without a checkpoint.
  unsigned number(unsigned round) const { return round < first_after() ? round : round - planes; }
};

// Saves in the midst of a run, and returns what the first trainers' rank has after each plane, by
// plane.
std::vector<std::vector<std::uint8_t>> save_planes(HubRun& run, const Saving& saving) {
  run.kind = [saving](unsigned, unsigned round) { return saving.kind(round); };
  run.plane = [saving](unsigned round) { return saving.plane(round); };
  const auto value = [saving](unsigned rank, unsigned trainer, std::uint32_t key,
                              std::uint64_t element, unsigned round) {
    return small_number(rank, trainer, key, element, saving.number(round));
  };
  run.run(1 + kRoundsBefore, value);
  std::vector<std::vector<std::uint8_t>> saved(saving.planes);
  for (unsigned round = 1 + kRoundsBefore; round < saving.first_after(); ++round) {
    run.run(round + 1, value);
    saved[saving.plane(round)] = run.weight_bytes(run.first());
    for (unsigned rank = run.first(); rank < run.ranks(); ++rank) {
      EXPECT_EQ(run.weight_bytes(rank), run.weight_bytes(run.first())) << "rank " << rank;
    }
  }
  run.run(saving.first_after() + kRoundsAfter, value);
  return saved;
}

void expect_same_weights(const HubRun& run, const HubRun& whole, const std::string& where) {
  EXPECT_EQ(run.refused(), 0U) << where;
  for (unsigned rank = 0; rank < run.ranks(); ++rank) {
    EXPECT_FALSE(run.disagrees(rank)) << where;
    if (rank < run.first()) continue;
    EXPECT_EQ(run.weight_bytes(rank), whole.weight_bytes(rank)) << where << ", rank " << rank;
  }
}

void expect_is_saved_and_loaded(const HubRunSettings& settings, const std::string& where) {
  HubRun whole(settings);
  whole.run(1 + kRoundsBefore + kRoundsAfter, small_number);

  const Saving saving{planes_of(settings)};
  HubRun before(settings);
  const std::vector<std::vector<std::uint8_t>> saved = save_planes(before, saving);
  expect_same_weights(before, whole, where + ", which goes on");

  HubRunSettings other = settings;
  other.seed = 2;
  HubRun after(other);
  const auto plane_of = [&saving](unsigned round) { return saving.planes - 1 - round; };
  after.plane = plane_of;
  after.kind = [&saving](unsigned, unsigned round) {
    return round < saving.planes ? PushKind::loaded : PushKind::gradients;
  };
  after.steps = [](unsigned rank) { return rank == kHolder ? 1 + kRoundsBefore : 0U; };
  after.bytes = [&](unsigned rank, std::uint32_t key, unsigned round) -> const std::uint8_t* {
    if (rank != kHolder || round >= saving.planes) return nullptr;
    return saved[plane_of(round)].data() + after.model().begin_of_key(key);
  };
  after.run(saving.planes + kRoundsAfter, [&](unsigned rank, unsigned trainer, std::uint32_t key,
                                              std::uint64_t element, unsigned round) {
    if (round < saving.planes) return 999.0F;  // that nobody must read
    return small_number(rank, trainer, key, element, 1 + kRoundsBefore + round - saving.planes);
  });
  expect_same_weights(after, whole, where + ", which was loaded");
}

TEST(HubPlanes, AreAllThatGoingOnNeedsWithEveryTypeAndOptimizer) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    for (const OptimizerRule rule :
         {OptimizerRule::sgd, OptimizerRule::momentum, OptimizerRule::adamw}) {
      expect_is_saved_and_loaded(aggregated(type, rule),
                                 std::to_string(static_cast<int>(type)) + " " +
                                     std::string(aggregation::optimizer_rule_name(rule)));
    }
  }
}

TEST(HubPlanes, AreOfTheChunksOfEachOfSeveralAggregators) {
  for (const DataType type : {DataType::float32, DataType::bfloat16}) {
    expect_is_saved_and_loaded(aggregated(type, OptimizerRule::adam, 2), "two aggregators");
  }
}

TEST(HubPlanes, AreThoseOfTheFirstTrainerWhereServersHaveSeveral) {
  HubRunSettings settings = aggregated(DataType::float16, OptimizerRule::adam);
  settings.trainers = 2;
  settings.lcores = 2;
  expect_is_saved_and_loaded(settings, "two trainers");
}

// All keys of a hub, in one round.
void expect_disagrees(const std::function<void(HubRun&)>& prepare) {
  HubRun run(aggregated(DataType::float32, OptimizerRule::momentum));
  run.kind = [](unsigned, unsigned) { return PushKind::loaded; };
  run.plane = [](unsigned) { return 1U; };
  run.steps = [](unsigned rank) { return rank == kHolder ? 4U : 0U; };
  prepare(run);
  run.run(1, small_number);
  EXPECT_TRUE(run.disagrees(0));
}

TEST(HubPlanes, AreLoadedByOneTrainer) {
  expect_disagrees([](HubRun& run) {
    run.steps = [](unsigned rank) { return rank == 1 || rank == kHolder ? 4U : 0U; };
  });
  expect_disagrees([](HubRun& run) { run.steps = [](unsigned) { return 0U; }; });
}

TEST(HubPlanes, AreNotMixedWithWhatIsSaved) {
  expect_disagrees([](HubRun& run) {
    run.kind = [](unsigned rank, unsigned) {
      return rank == 1 ? PushKind::saved : PushKind::loaded;
    };
  });
}

// Sends a label of its own before the first contribution that arrives at rank 0, and returns
// whether it was taken.
bool is_taken(const HubRunSettings& settings, PushKind kind, unsigned plane) {
  HubRun run(settings);
  bool taken = false;
  bool tried = false;
  run.before = [&](const HubRun::Arrival& arrival) {
    if (tried || arrival.from.stage != control::Stage::aggregation) return;
    tried = true;
    HubLabel label = arrival.label;
    label.kind = kind;
    label.plane = static_cast<std::uint8_t>(plane);
    taken = arrival.exchange.arrive(arrival.from, label, arrival.payload.data(),
                                    static_cast<std::uint32_t>(arrival.payload.size()));
  };
  run.run(1, small_number);
  EXPECT_TRUE(tried);
  return taken;
}

TEST(HubPlanes, AreRefusedWhereThereAreNone) {
  const HubRunSettings settings = aggregated(DataType::float32, OptimizerRule::momentum);
  EXPECT_TRUE(is_taken(settings, PushKind::saved, 1));
  EXPECT_FALSE(is_taken(settings, PushKind::saved, 2));
  EXPECT_FALSE(is_taken(settings, PushKind::weights, 1));
  HubRunSettings without = settings;
  without.aggregators = 0;
  EXPECT_FALSE(is_taken(without, PushKind::saved, 1));
  EXPECT_FALSE(is_taken(without, PushKind::loaded, 0));
}

TEST(HubPlanes, OfSixteenBitsAreHalvesOfTheirArray) {
  const std::vector<float> values = {1.5F, -0.0F, 3e-41F, 1e30F};
  std::vector<std::uint16_t> low(values.size());
  std::vector<std::uint16_t> high(values.size());
  control::read_halves(values.data(), 3, values.size(), low.data());
  control::read_halves(values.data(), 4, values.size(), high.data());
  EXPECT_EQ(control::array_of_plane(DataType::float16, 3), 1U);
  EXPECT_EQ(control::array_of_plane(DataType::float16, 4), 1U);
  std::vector<float> again(values.size(), 7);
  control::write_halves(again.data(), 4, values.size(), high.data());
  control::write_halves(again.data(), 3, values.size(), low.data());
  EXPECT_EQ(std::memcmp(again.data(), values.data(), values.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace gradcube::dataplane
