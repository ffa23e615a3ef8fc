// Hubs that accumulate: rounds that add to what the owners have, and rounds that apply it.

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/control/plans.h"
#include "tests/unit/dataplane/hub/hub_places.h"
#include "tests/unit/dataplane/hub/hub_run.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using aggregation::OptimizerRule;

// Rounds: the weights, then for each step so many that are accumulated and one that applies them.
constexpr unsigned kAdded = 2;
constexpr unsigned kApplied = 3;
constexpr unsigned kPlayed = 1 + kApplied * (kAdded + 1);

PushKind kind_of(unsigned /*rank*/, unsigned round) {
  if (round == 0) return PushKind::weights;
  return round % (kAdded + 1) == 0 ? PushKind::applied : PushKind::accumulated;
}
float scale_of(unsigned /*rank*/, unsigned round) { return round == 6 ? 0.5F : 0.3F; }

// Of three servers, whose root may be an aggregator.
control::Plan rooted_plan(unsigned aggregators) {
  return aggregators == 0 ? control::plan_of("ps", "star:3") : aggregated_plan(aggregators, 2);
}

HubRun run_of(HubRunSettings settings) {
  settings.accumulates = true;
  return HubRun(std::move(settings));
}

void play(HubRun& run, const HubRun::Value& value, unsigned rounds = kPlayed) {
  run.kind = kind_of;
  run.scale = scale_of;
  run.run(rounds, value);
}

// What is accumulated of a key by all trainers in a round: the mean.
std::vector<float> mean_of(const HubRun& run, std::uint32_t key, unsigned round) {
  std::vector<float> means(run.model().keys()[key].elements);
  for (std::uint64_t i = 0; i < means.size(); ++i) {
    float total = 0;
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      for (unsigned t = 0; t < run.trainers(rank); ++t) {
        total += small_number(rank, t, key, i, round);
      }
    }
    means[i] = total / static_cast<float>(run.all_trainers());
  }
  return means;
}

struct Expected {
  std::vector<float> weights;
  double squares = 0;  // before the last step
};

Expected expected(const HubRun& run, std::uint32_t key) {
  const control::HubKey& of = run.model().keys()[key];
  const aggregation::OptimizerSettings& settings = run.asked_of(key);
  std::vector<float> first(of.elements);
  std::vector<float> second(of.elements);
  std::vector<float> sums(of.elements);
  Expected its{std::vector<float>(of.elements), 0};
  for (std::uint64_t i = 0; i < of.elements; ++i) its.weights[i] = small_number(0, 0, key, i, 0);
  for (unsigned round = 1; round < kPlayed; ++round) {
    if (kind_of(0, round) == PushKind::accumulated) {
      const std::vector<float> means = mean_of(run, key, round);
      for (std::uint64_t i = 0; i < of.elements; ++i) sums[i] += means[i];
      continue;
    }
    its.squares = 0;
    for (float& sum : sums) {
      its.squares += static_cast<double>(sum) * sum;
      sum *= scale_of(0, round);
    }
    const void* source = sums.data();
    aggregation::select_kernels(256).optimizers.optimize(DataType::float32,
                                                         aggregation::optimizer_form(settings, 1))(
        {its.weights.data(), first.data(), second.data(), nullptr}, &source, 1, of.elements,
        aggregation::optimizer_step(settings, settings.learning_rate, round / (kAdded + 1), 1));
    sums.assign(of.elements, 0);
  }
  if (of.type == DataType::float32) return its;
  std::array<std::uint8_t, 2> rounded{};
  for (float& weight : its.weights) {
    write_value(of.type, rounded.data(), 0, weight);
    weight = read_value(of.type, rounded.data(), 0);
  }
  return its;
}

void expect_stepped(const HubRun& run, const std::string& where) {
  EXPECT_EQ(run.refused(), 0U) << where;
  for (std::uint32_t key = 0; key < run.model().keys().size(); ++key) {
    const Expected its = expected(run, key);
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      EXPECT_FALSE(run.disagrees(rank)) << where;
      EXPECT_LE(run.memory(rank), run.needed(rank)) << where;
      if (run.trainers(rank) == 0) continue;
      EXPECT_EQ(run.weights(rank, key), its.weights) << where << ", rank " << rank;
      EXPECT_EQ(run.ended(rank, key), kPlayed) << where;
      EXPECT_EQ(run.squares(rank, key), run.squares(run.first(), key)) << "in bits: " << where;
      EXPECT_NEAR(run.squares(rank, key), its.squares, 1e-6 * its.squares) << where;
    }
  }
}

TEST(HubAccumulate, StepsWithAllThatWasAccumulatedOnEveryPlan) {
  for (const Place& place : kPlaces) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      HubRun run = run_of({.plan = control::plan_of(place.algorithm, place.topology),
                           .keys = keys_of(DataType::float32),
                           .optimizer = settings_of(OptimizerRule::adamw),
                           .lcores = static_cast<unsigned>(seed),
                           .seed = seed});
      play(run, small_number);
      expect_stepped(run, place.text());
    }
  }
}

TEST(HubAccumulate, KeepsWhatIsAccumulatedOf16BitsInFloat32) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    HubRun run = run_of({.plan = control::plan_of("bml", "bcube:2,2"),
                         .keys = keys_of(type),
                         .optimizer = settings_of(OptimizerRule::momentum),
                         .trainers = 2});
    play(run, small_number);
    expect_stepped(run, std::string(aggregation::data_type_name(type)));
  }
}

TEST(HubAccumulate, StepsAtAggregators) {
  for (const DataType type : {DataType::float32, DataType::bfloat16}) {
    for (const unsigned aggregators : {1U, 2U}) {
      HubRun run = run_of({.plan = aggregated_plan(aggregators, 4),
                           .keys = keys_of(type),
                           .optimizer = settings_of(OptimizerRule::adam),
                           .aggregators = aggregators,
                           .lcores = 2});
      play(run, small_number);
      expect_stepped(run, std::to_string(aggregators) + " aggregators");
    }
  }
}

TEST(HubAccumulate, TellsTheSameBitsOfTheNormInEveryOrder) {
  const auto pushed = [](unsigned rank, unsigned, std::uint32_t key, std::uint64_t element,
                         unsigned round) {
    const std::uint64_t mixed =
        (rank * 31 + key * 7 + element * 13 + round * 101) * 0x9e3779b97f4a7c15U;
    return static_cast<float>(static_cast<double>(mixed >> 40) / 1e7 - 0.8);
  };
  for (const Place& place : kPlaces) {
    std::vector<double> squares;
    for (const std::uint64_t seed : {1, 2, 3}) {
      HubRun run = run_of({.plan = control::plan_of(place.algorithm, place.topology),
                           .keys = keys_of(DataType::float32),
                           .seed = seed});
      play(run, pushed, 3);
      for (unsigned rank = 0; rank < run.ranks(); ++rank) squares.push_back(run.squares(rank, 1));
    }
    EXPECT_GT(squares[0], 0);
    EXPECT_EQ(squares, std::vector<double>(squares.size(), squares[0])) << place.text();
  }
}

TEST(HubAccumulate, TellsNormsThatAreNoNumbers) {
  for (const auto& [value, finite] : {std::pair(INFINITY, false), std::pair(1e30F, true)}) {
    HubRun run = run_of(
        {.plan = control::plan_of("bml", "bcube:2,2"), .keys = {{"one", 300, DataType::float32}}});
    play(
        run,
        [value = value](unsigned, unsigned, std::uint32_t, std::uint64_t element, unsigned) {
          return element == 17 ? value : 0.0F;
        },
        2);
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      EXPECT_EQ(std::isfinite(run.squares(rank, 0)), finite);
      if (finite) {
        EXPECT_FLOAT_EQ(static_cast<float>(std::sqrt(run.squares(rank, 0))), 1e30F);
      }
    }
  }
}

TEST(HubAccumulate, TakesNoStepWithTheScale0AndDropsWhatWasAccumulated) {
  for (const unsigned aggregators : {0U, 1U}) {
    HubRun run = run_of({.plan = rooted_plan(aggregators),
                         .keys = {{"one", 300, DataType::float32}},
                         .optimizer = settings_of(OptimizerRule::momentum),
                         .aggregators = aggregators});
    run.kind = [](unsigned, unsigned round) {
      return round == 0 ? PushKind::weights
                        : (round % 2 == 1 ? PushKind::accumulated : PushKind::applied);
    };
    run.scale = [](unsigned, unsigned round) { return round == 2 ? 0.0F : 1.0F; };
    run.rate = [](unsigned, unsigned) { return 0.5; };
    run.run(5, [](unsigned, unsigned, std::uint32_t, std::uint64_t, unsigned round) {
      return round == 0 ? 8.0F : (round == 1 ? INFINITY : 2.0F);
    });
    // The first step of momentum, with weight decay.
    EXPECT_EQ(run.weights(1, 0), std::vector<float>(300, 8 - 0.5F * (2 + 0.125F * 8)));
  }
}

TEST(HubAccumulate, FindsTrainersThatApplyOtherwiseThanOthers) {
  for (const unsigned aggregators : {0U, 1U}) {
    for (const bool scales : {true, false}) {
      HubRun run = run_of({.plan = rooted_plan(aggregators),
                           .keys = {{"one", 3000, DataType::float32}},
                           .aggregators = aggregators});
      play(run, small_number, 3);
      run.scale = [&](unsigned rank, unsigned) { return scales && rank == 2 ? 0.5F : 0.25F; };
      run.rate = [&](unsigned rank, unsigned) { return !scales && rank == 2 ? 0.5 : 0.25; };
      run.run(4, small_number);
      bool found = false;
      for (unsigned rank = 0; rank < run.ranks(); ++rank) found = found || run.disagrees(rank);
      EXPECT_TRUE(found);
      EXPECT_EQ(run.ended(1, 0), 3U);
    }
  }
}

// Of labels one pair in 2^32 agrees that should not.
TEST(HubAccumulate, FindsNumbersThatDifferAtARootWhereTheirLabelsDoNot) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    HubRun run = run_of({.plan = rooted_plan(1),
                         .keys = {{"one", 3000, DataType::float32}},
                         .aggregators = 1,
                         .seed = seed});
    play(run, small_number, 3);
    bool is_told = false;
    run.before = [&](const HubRun::Arrival& arrival) {
      if (is_told || arrival.from.stage != control::Stage::aggregation) return;
      is_told = true;
      constexpr HubNumbers kOther = {0.25F, 0.125F};
      arrival.exchange.arrive(arrival.from, arrival.label,
                              reinterpret_cast<const std::uint8_t*>(&kOther), sizeof(kOther));
    };
    run.run(4, small_number);
    EXPECT_TRUE(run.disagrees(0)) << "seed " << seed;
    EXPECT_EQ(run.ended(1, 0), 3U);
  }
}

// The weights 8 and the gradients 2, then what is pushed as `kind`, the gradients 2 again, and a
// step with all that is accumulated, by the rate 1.
void expect_after(PushKind kind, DataType type, float pushed, float expected) {
  const unsigned aggregators = kind == PushKind::loaded ? 1 : 0;
  HubRun run = run_of(
      {.plan = rooted_plan(aggregators), .keys = {{"one", 300, type}}, .aggregators = aggregators});
  run.kind = [kind](unsigned, unsigned round) {
    return std::array{PushKind::weights, PushKind::accumulated, kind, PushKind::accumulated,
                      PushKind::applied}[round];
  };
  run.rate = [](unsigned, unsigned) { return 1; };
  run.plane = [](unsigned) { return 0U; };
  run.steps = [&](unsigned rank) { return aggregators != 0 && rank == 1 ? 1 : 0U; };
  const std::vector<float> whole(300, pushed);  // of 16 bits
  run.arrays = [&](unsigned, std::uint32_t) {
    return std::array<const float*, kHubArrays>{whole.data()};
  };
  run.run(5, [&](unsigned, unsigned, std::uint32_t, std::uint64_t, unsigned round) {
    return round == 0 ? 8.0F : (round == 2 ? pushed : 2.0F);
  });
  EXPECT_EQ(run.weights(1, 0), std::vector<float>(300, expected)) << static_cast<int>(kind);
}

TEST(HubAccumulate, BeginsAnewWithWeightsThatArePushedRestoredOrLoaded) {
  for (const PushKind kind : {PushKind::weights, PushKind::restored, PushKind::loaded}) {
    expect_after(kind, DataType::float32, 16, 16 - 2);
  }
  expect_after(PushKind::restored, DataType::bfloat16, 16, 16 - 2);
}

TEST(HubAccumulate, KeepsWhatIsAccumulatedWhenGradientsAreSteppedWith) {
  for (const DataType type : {DataType::float32, DataType::float16}) {
    expect_after(PushKind::gradients, type, 1, 8 - 1 - 2 * 2);
  }
}

TEST(HubAccumulate, RefusesWhatDoesNotFit) {
  for (const Place& place : kPlaces) {
    HubRun run = run_of({.plan = control::plan_of(place.algorithm, place.topology),
                         .keys = keys_of(DataType::float32),
                         .optimizer = settings_of(OptimizerRule::adamw)});
    run.before = [&](const HubRun::Arrival& arrival) {
      std::vector<std::uint8_t> payload(2048, 0xee);
      const auto bytes = static_cast<std::uint32_t>(arrival.payload.size());
      const auto refuse = [&](const HubLabel& label, std::uint32_t length) {
        EXPECT_FALSE(arrival.exchange.arrive(arrival.from, label, payload.data(), length));
      };
      for (const std::uint32_t length : {bytes + 4, bytes + 8, bytes == 0 ? 64 : bytes - 1}) {
        refuse(arrival.label, length);
      }
      HubLabel label = arrival.label;
      label.plane = 1;
      refuse(label, bytes);
      if (label.kind != PushKind::accumulated) return;
      // A contribution of another kind is a disagreement of trainers.
      if (arrival.from.stage != control::Stage::broadcast) return;
      for (const PushKind kind : {PushKind::gradients, PushKind::applied}) {
        label = arrival.label;
        label.kind = kind;
        for (std::uint32_t length = 0; length <= 256; ++length) refuse(label, length);
      }
    };
    play(run, small_number);
    run.before = {};
    expect_stepped(run, place.text());
  }
}

TEST(HubAccumulate, IsNotDoneByAHubThatDoesNotAccumulate) {
  HubRun run({.plan = control::plan_of("bml", "bcube:2,2"), .keys = keys_of(DataType::float32)});
  run.before = [](const HubRun::Arrival& arrival) {
    const std::vector<std::uint8_t> payload(2048, 0xee);
    for (const PushKind kind : {PushKind::accumulated, PushKind::applied}) {
      HubLabel label = arrival.label;
      label.kind = kind;
      for (std::uint32_t bytes = 0; bytes <= 1024; bytes += 4) {
        EXPECT_FALSE(arrival.exchange.arrive(arrival.from, label, payload.data(), bytes));
      }
    }
  };
  run.run(2, small_number);
  EXPECT_EQ(run.refused(), 0U);
}

}  // namespace
}  // namespace gradcube::dataplane
