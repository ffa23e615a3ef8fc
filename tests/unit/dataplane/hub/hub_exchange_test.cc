#include "dataplane/hub/hub_exchange.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <random>
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
using control::HubKey;

float any_number(unsigned rank, unsigned trainer, std::uint32_t key, std::uint64_t element,
                 unsigned round) {
  if (round == 0) return 0.1F * static_cast<float>(element % 17);
  const std::uint64_t mixed =
      (rank * 31 + trainer * 17 + key * 7 + element * 13 + round * 101) * 0x9e3779b97f4a7c15U;
  return static_cast<float>(static_cast<double>(mixed >> 40) / 1e7 - 0.8);
}

// What the optimizer makes of a key's sums, step by step, at one place.
std::vector<float> expected_weights(const HubRun& run, std::uint32_t key, unsigned rounds) {
  const HubKey& of = run.model().keys()[key];
  std::vector<float> weights(of.elements);
  std::vector<float> first(of.elements);
  std::vector<float> second(of.elements);
  std::vector<std::uint8_t> sum(of.elements * sizeof(float));
  std::vector<std::uint8_t> rounded(of.elements * sizeof(float));
  const unsigned trainers = run.all_trainers();
  const aggregation::OptimizerSettings& settings = run.asked_of(key);
  for (std::uint64_t i = 0; i < of.elements; ++i) weights[i] = small_number(0, 0, key, i, 0);
  for (unsigned round = 1; round < rounds; ++round) {
    for (std::uint64_t i = 0; i < of.elements; ++i) {
      float total = 0;
      for (unsigned rank = 0; rank < run.ranks(); ++rank) {
        for (unsigned t = 0; t < run.trainers(rank); ++t) {
          total += small_number(rank, t, key, i, round);
        }
      }
      write_value(of.type, sum.data(), i, total);
    }
    const void* source = sum.data();
    aggregation::select_kernels(256).optimizers.optimize(
        of.type, aggregation::optimizer_form(settings, trainers))(
        {weights.data(), first.data(), second.data(), rounded.data()}, &source, 1, of.elements,
        aggregation::optimizer_step(settings, settings.learning_rate, round, trainers));
  }
  if (of.type == DataType::float32 || rounds == 1) return weights;
  for (std::uint64_t i = 0; i < of.elements; ++i) {
    weights[i] = read_value(of.type, rounded.data(), i);
  }
  return weights;
}

void expect_trained(const HubRun& run, unsigned rounds, const std::string& where) {
  EXPECT_EQ(run.refused(), 0U) << where;
  EXPECT_EQ(run.miscounted(), 0U) << where;
  for (std::uint32_t key = 0; key < run.model().keys().size(); ++key) {
    const std::vector<float> expected = expected_weights(run, key, rounds);
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      if (run.trainers(rank) != 0) {
        EXPECT_EQ(run.ended(rank, key), rounds) << where;
      } else if (run.first() > 1) {
        continue;  // it has its own chunks alone
      }
      EXPECT_EQ(run.weights(rank, key), expected) << where << ", rank " << rank << ", key " << key;
    }
  }
}

TEST(HubExchange, TrainsOnEveryPlanWhateverTheOrderOfKeysAndArrivals) {
  for (const Place& place : kPlaces) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                  .keys = keys_of(DataType::float32),
                  .optimizer = settings_of(OptimizerRule::nesterov),
                  .lcores = static_cast<unsigned>(seed % 3 + 1),
                  .seed = seed});
      run.run(4, small_number);
      expect_trained(run, 4, place.text());
      for (unsigned rank = 0; rank < run.ranks(); ++rank) EXPECT_FALSE(run.disagrees(rank));
    }
  }
}

TEST(HubExchange, StepsWithTheSettingsOfEachKey) {
  for (const Place& place : kPlaces) {
    HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                .keys = keys_of(DataType::float32),
                .optimizer = settings_of(OptimizerRule::momentum),
                .of_keys = ";*:clip=2;bias:weight-decay=0,lr=1;n*:weight-decay=0,momentum=0.25"});
    run.run(4, small_number);
    expect_trained(run, 4, place.text());
  }
}

TEST(HubExchange, KeepsWeightsOf16BitsWhole) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    HubRun run({.plan = control::plan_of("bml", "bcube:2,2"),
                .keys = keys_of(type),
                .optimizer = settings_of(OptimizerRule::adamw)});
    run.run(5, small_number);
    expect_trained(run, 5, std::string(aggregation::data_type_name(type)));
  }
}

TEST(HubExchange, AddsUpTheTrainersOfAServerFirst) {
  HubRun run({.plan = control::plan_of("bml", "bcube:2,2"),
              .keys = keys_of(DataType::float32),
              .optimizer = settings_of(OptimizerRule::momentum),
              .trainers = 3});
  run.run(4, small_number);
  expect_trained(run, 4, "three trainers");
}

TEST(HubExchange, TrainsAtARootThatHasNoTrainers) {
  for (const unsigned aggregators : {1U, 2U, 5U}) {
    HubRun run({.plan = aggregated_plan(aggregators, 4),
                .keys = keys_of(DataType::float32),
                .optimizer = settings_of(OptimizerRule::adam),
                .aggregators = aggregators,
                .lcores = 2});
    run.run(4, small_number);
    expect_trained(run, 4, std::to_string(aggregators) + " roots alone");
    std::uint64_t owned = 0;
    for (unsigned rank = 0; rank < run.first(); ++rank) owned += run.owned(rank);
    EXPECT_EQ(owned, 900U + 3 + 257 + 64) << "each element is one root's";
  }
}

// It is told by frames, as a float, with which rate its trainers step.
TEST(HubExchange, StepsAtARootWithoutTrainersWithTheRateThatTheyName) {
  aggregation::OptimizerSettings settings;
  settings.learning_rate = 99;
  HubRun run({.plan = control::plan_of("ps", "star:3"),
              .keys = {{"one", 300, DataType::float32}},
              .optimizer = settings,
              .aggregators = 1});
  run.rate = [](unsigned, unsigned round) { return round == 1 ? 0.5 : 0.1; };
  run.run(3, [](unsigned, unsigned, std::uint32_t, std::uint64_t, unsigned round) {
    return round == 0 ? 8.0F : 2.0F;
  });
  EXPECT_EQ(run.weights(1, 0), std::vector<float>(300, 8.0F - 0.5F * 2.0F - 0.1F * 2.0F));
}

TEST(HubExchange, GivesTheSameBitsInEveryOrder) {
  for (const Place& place : kPlaces) {
    std::vector<std::vector<std::uint8_t>> weights;
    for (const std::uint64_t seed : {1, 2, 3}) {
      HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                  .keys = keys_of(DataType::float32),
                  .optimizer = settings_of(OptimizerRule::adam),
                  .seed = seed});
      run.run(4, any_number);
      for (unsigned rank = 0; rank < run.ranks(); ++rank) {
        weights.push_back(run.weight_bytes(rank));
      }
    }
    for (const auto& bytes : weights) {
      EXPECT_EQ(bytes, weights[0]) << place.text();
    }
  }
}

TEST(HubExchange, AKeyThatSomeTrainerDoesNotPushHoldsUpNoOther) {
  for (const Place& place : kPlaces) {
    HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                .keys = keys_of(DataType::float32),
                .optimizer = settings_of(OptimizerRule::sgd)});
    run.run(3, small_number, [](unsigned rank, std::uint32_t key, unsigned) {
      return rank != 1 || key != 1;  // "conv", the longest
    });
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      for (const std::uint32_t key : {0U, 2U, 3U}) {
        EXPECT_EQ(run.ended(rank, key), 3U) << place.text();
      }
      EXPECT_EQ(run.ended(rank, 1), 0U);
    }
  }
}

TEST(HubExchange, RefusesWhatDoesNotFitAndGoesOnAsIfItHadNotCome) {
  for (const Place& place : kPlaces) {
    HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                .keys = keys_of(DataType::float32),
                .optimizer = settings_of(OptimizerRule::momentum),
                .lcores = 2});
    const auto chunks = static_cast<std::uint32_t>(run.model().chunks().size());
    run.before = [&](const HubRun::Arrival& arrival) {
      const auto bytes = static_cast<std::uint32_t>(arrival.payload.size());
      std::vector<std::uint8_t> payload(arrival.payload.size() + 4, 0xee);
      const auto refuse = [&](HubStream from, HubLabel label, std::uint32_t length) {
        EXPECT_FALSE(arrival.exchange.arrive(from, label, payload.data(), length));
      };
      for (const std::uint32_t chunk : {chunks, UINT32_MAX}) {
        HubLabel label = arrival.label;
        label.chunk = chunk;
        refuse(arrival.from, label, bytes);
      }
      HubLabel label = arrival.label;
      label.position = 100000;
      refuse(arrival.from, label, bytes);
      label = arrival.label;
      label.round = static_cast<std::uint8_t>(label.round + 2);
      refuse(arrival.from, label, bytes);
      label.round = static_cast<std::uint8_t>(label.round - 3);
      refuse(arrival.from, label, bytes);
      refuse(arrival.from, arrival.label, bytes + 4);
      HubStream from = arrival.from;
      from.offset = 0;
      refuse(from, arrival.label, bytes);
    };
    run.run(3, small_number);
    run.before = {};
    expect_trained(run, 3, place.text());
  }
}

TEST(HubExchange, TakesEachSegmentOnce) {
  for (const Place& place : kPlaces) {
    HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                .keys = keys_of(DataType::float32),
                .optimizer = settings_of(OptimizerRule::momentum)});
    std::deque<HubRun::Arrival> earlier;
    std::size_t seen = 0;
    run.before = [&](const HubRun::Arrival& arrival) {
      for (const HubRun::Arrival& one : earlier) {
        const std::vector<std::uint8_t> other(one.payload.size(), 0xee);
        EXPECT_FALSE(one.exchange.arrive(one.from, one.label, other.data(),
                                         static_cast<std::uint32_t>(other.size())));
      }
      // Of all that arrives, in both stages, some is remembered for a while.
      if (++seen % 3 == 0) earlier.push_back(arrival);
      if (earlier.size() > 40) earlier.pop_front();
    };
    run.run(3, small_number);
    run.before = {};
    expect_trained(run, 3, place.text());
  }
}

TEST(HubExchange, RefusesTheNextRoundBeforeThisOneHasEnded) {
  for (const Place& place : kPlaces) {
    HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                .keys = keys_of(DataType::float32),
                .optimizer = settings_of(OptimizerRule::momentum)});
    run.before = [&](const HubRun::Arrival& arrival) {
      if (arrival.from.stage != control::Stage::broadcast) return;
      const std::vector<std::uint8_t> other(arrival.payload.size(), 0xee);
      HubLabel label = arrival.label;
      ++label.round;
      EXPECT_FALSE(arrival.exchange.arrive(arrival.from, label, other.data(),
                                           static_cast<std::uint32_t>(other.size())));
    };
    run.run(3, small_number);
    run.before = {};
    expect_trained(run, 3, place.text());
  }
}

TEST(HubExchange, BeginsAnewWithWeightsThatArePushedLater) {
  HubRun run({.plan = control::plan_of("bml", "bcube:3,2"),
              .keys = keys_of(DataType::bfloat16),
              .optimizer = settings_of(OptimizerRule::adam)});
  run.kind = [](unsigned, unsigned round) {
    return round == 0 || round == 3 ? PushKind::weights : PushKind::gradients;
  };
  // Rounds 3 to 5 are as the rounds 0 to 2 are.
  run.run(6, [](unsigned rank, unsigned trainer, std::uint32_t key, std::uint64_t element,
                unsigned round) { return small_number(rank, trainer, key, element, round % 3); });
  for (std::uint32_t key = 0; key < run.model().keys().size(); ++key) {
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      EXPECT_EQ(run.weights(rank, key), expected_weights(run, key, 3)) << key;
    }
  }
}

// 1, 2^24 and -2^24: what is left of the 1 shows the order.
TEST(HubExchange, AddsInTheOrderOfTheDigits) {
  const auto pushed = [](unsigned rank, unsigned, std::uint32_t, std::uint64_t, unsigned round) {
    constexpr float kLarge = 16777216;
    if (round == 0) return 0.0F;
    return rank == 0 ? 1.0F : (rank == 1 ? kLarge : -kLarge);
  };
  aggregation::OptimizerSettings settings;
  settings.learning_rate = 3;
  for (const auto& [algorithm, sum] : {std::pair("mesh", 0.0F), std::pair("ps", 0.0F)}) {
    HubRun run({.plan = control::plan_of(algorithm, "star:3"),
                .keys = {{"one", 300, DataType::float32}},
                .optimizer = settings});
    run.run(2, pushed);
    EXPECT_EQ(run.weights(1, 0), std::vector<float>(300, sum)) << algorithm;
  }
  HubRun reversed({.plan = control::plan_of("mesh", "star:3"),
                   .keys = {{"one", 300, DataType::float32}},
                   .optimizer = settings});
  reversed.run(2, [&](unsigned rank, unsigned trainer, std::uint32_t key, std::uint64_t element,
                      unsigned round) { return pushed(2 - rank, trainer, key, element, round); });
  EXPECT_EQ(reversed.weights(1, 0), std::vector<float>(300, -1.0F));
}

// What a server does with anything at all that its peers send: memory is for sanitizers to watch.
TEST(HubExchange, StaysWithinItsBoundsWhateverComes) {
  for (const Place& place : kPlaces) {
    HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                .keys = keys_of(DataType::float32),
                .optimizer = settings_of(OptimizerRule::adam)});
    std::mt19937_64 random(20261124);
    const auto below = [&random](unsigned count) {
      return static_cast<unsigned>(random() % count);
    };
    const std::vector<std::uint8_t> payload(1024, 0xee);
    std::uint64_t most = 0;
    run.before = [&](const HubRun::Arrival& arrival) {
      for (unsigned i = 0; i < 20; ++i) {
        const HubStream from = {
            below(2) == 0 ? control::Stage::aggregation : control::Stage::broadcast,
            below(4) == 0 ? below(256) : arrival.from.step, below(5)};
        HubLabel label = {below(static_cast<unsigned>(run.model().chunks().size()) + 1), below(6),
                          static_cast<std::uint8_t>(arrival.label.round + below(3)),
                          static_cast<PushKind>(below(8) == 0 ? below(256) : 0)};
        const auto bytes =
            below(2) == 0 ? static_cast<std::uint32_t>(arrival.payload.size()) : below(1024);
        arrival.exchange.arrive(from, label, payload.data(), bytes);
      }
      most = std::max<std::uint64_t>(most, run.longest_queue());
    };
    run.run(4, small_number);
    EXPECT_LE(most, run.most_segments()) << place.text();
    EXPECT_EQ(run.miscounted(), 0U) << place.text();
  }
}

TEST(HubExchange, OwnsAnEqualPartOfTheStateOnEachServer) {
  const HubRun run({.plan = control::plan_of("bml", "bcube:3,2"),
                    .keys = {{"one", 9 * 16 * 100, DataType::float32}},
                    .optimizer = settings_of(OptimizerRule::adam),
                    .chunk_bytes = 9 * 64 * 4});
  EXPECT_EQ(run.owned(0), 1600U);
  std::uint64_t all = 0;
  for (unsigned rank = 0; rank < run.ranks(); ++rank) all += run.owned(rank);
  EXPECT_EQ(all, 9U * 1600);
}

TEST(HubExchange, LeavesAllStateToARoot) {
  const HubRun run({.plan = control::plan_of("ps", "star:4"),
                    .keys = {{"one", 1000, DataType::float32}},
                    .optimizer = settings_of(OptimizerRule::adam)});
  EXPECT_EQ(run.owned(0), 1000U);
  EXPECT_EQ(run.owned(3), 0U);
}

TEST(HubExchange, NeedsTrainersWhereAPieceIsWorkedOnInSteps) {
  EXPECT_THROW(HubRun({.plan = control::plan_of("bml", "bcube:2,2"),
                       .keys = keys_of(DataType::float32),
                       .aggregators = 1}),
               std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::dataplane
