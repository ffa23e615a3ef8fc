// An asynchronous hub: each server's gradients are stepped with as they come.

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/control/plans.h"
#include "tests/unit/dataplane/hub/hub_places.h"
#include "tests/unit/dataplane/hub/hub_run.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using aggregation::OptimizerRule;

constexpr unsigned kRounds = 4;  // with gradients
constexpr unsigned kSlow = 3;    // a rank

HubRunSettings asynchronous(unsigned workers, std::uint32_t staleness,
                            OptimizerRule rule = OptimizerRule::sgd, unsigned aggregators = 1) {
  HubRunSettings settings = {.plan = aggregated_plan(aggregators, workers),
                             .keys = keys_of(DataType::float32),
                             .optimizer = settings_of(rule),
                             .aggregators = aggregators,
                             .staleness = staleness};
  settings.optimizer.weight_decay = 0;  // so that steps can be taken in any order
  return settings;
}

TEST(AsynchronousHub, StepsWithTheGradientsOfEachServerOnceInAnyOrder) {
  for (const std::uint32_t staleness : {0U, 1U, 3U, UINT32_MAX}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const auto aggregators = static_cast<unsigned>(1 + seed % 3);
      HubRunSettings settings = asynchronous(4, staleness, OptimizerRule::sgd, aggregators);
      settings.seed = seed;
      settings.lcores = 1 + seed % 2;
      settings.trainers = 1 + seed % 3;
      HubRun run(settings);
      // At the end all servers are given the weights that the root has.
      run.kind = [](unsigned, unsigned round) {
        if (round == 0) return PushKind::weights;
        return round <= kRounds ? PushKind::gradients : PushKind::saved;
      };
      run.plane = [](unsigned) { return 0U; };
      run.run(1 + kRounds, small_number);
      run.run(2 + kRounds, small_number);
      EXPECT_EQ(run.refused(), 0U);
      for (unsigned rank = 0; rank < run.first(); ++rank) EXPECT_FALSE(run.disagrees(rank));
      for (std::uint32_t key = 0; key < run.model().keys().size(); ++key) {
        for (unsigned rank = run.first(); rank < run.ranks(); ++rank) {
          ASSERT_EQ(run.ended(rank, key), 2 + kRounds) << staleness << ", seed " << seed;
          const std::vector<float> weights = run.weights(rank, key);
          for (std::uint64_t i = 0; i < weights.size(); ++i) {
            float expected = small_number(0, 0, key, i, 0);
            for (unsigned round = 1; round <= kRounds; ++round) {
              for (unsigned pusher = run.first(); pusher < run.ranks(); ++pusher) {
                float sum = 0;
                for (unsigned t = 0; t < settings.trainers; ++t) {
                  sum += small_number(pusher, t, key, i, round);
                }
                const float mean = sum / static_cast<float>(settings.trainers);
                expected -= 0.25F * mean;
              }
            }
            ASSERT_NEAR(weights[i], expected, 1e-4) << "key " << key << ", seed " << seed;
          }
        }
      }
    }
  }
}

// How many rounds with gradients others do beside one that does none.
unsigned rounds_beside_a_slow_one(std::uint32_t staleness, unsigned rounds) {
  HubRun run(asynchronous(4, staleness));
  run.run(1 + rounds, small_number,
          [](unsigned rank, std::uint32_t, unsigned round) { return rank != kSlow || round == 0; });
  EXPECT_EQ(run.ended(kSlow, 0), 1U);
  const unsigned ended = run.ended(1, 0);
  for (unsigned rank = 1; rank < run.ranks(); ++rank) {
    if (rank != kSlow) {
      EXPECT_EQ(run.ended(rank, 0), ended);
    }
  }
  return ended - 1;
}

TEST(AsynchronousHub, LetsNoServerBeFurtherAheadThanItsStaleness) {
  EXPECT_EQ(rounds_beside_a_slow_one(0, 10), 1U);
  EXPECT_EQ(rounds_beside_a_slow_one(1, 10), 2U);
  EXPECT_EQ(rounds_beside_a_slow_one(4, 10), 5U);
  EXPECT_EQ(rounds_beside_a_slow_one(UINT32_MAX, 300), 300U) << "rounds have 8 bits on the wire";
}

TEST(AsynchronousHub, GoesOnWithWhatItHeldWhenTheSlowOneHasCome) {
  HubRun run(asynchronous(4, 1));
  bool is_there = false;
  const auto may = [&is_there](unsigned rank, std::uint32_t, unsigned round) {
    return rank != kSlow || round == 0 || is_there;
  };
  run.run(1 + kRounds, small_number, may);
  EXPECT_LT(run.ended(1, 0), 1 + kRounds);
  is_there = true;
  run.run(1 + kRounds, small_number, may);
  for (unsigned rank = 1; rank < run.ranks(); ++rank) EXPECT_EQ(run.ended(rank, 0), 1 + kRounds);
}

TEST(AsynchronousHub, OfOneServerHasTheBitsOfASynchronousOne) {
  for (const OptimizerRule rule : {OptimizerRule::momentum, OptimizerRule::adamw}) {
    for (const DataType type : {DataType::float32, DataType::bfloat16}) {
      HubRunSettings settings = asynchronous(1, 2, rule);
      settings.keys = keys_of(type);
      HubRun run(settings);
      run.run(1 + kRounds, small_number);
      settings.staleness.reset();
      HubRun together(settings);
      together.run(1 + kRounds, small_number);
      EXPECT_EQ(run.weight_bytes(1), together.weight_bytes(1));
    }
  }
}

TEST(AsynchronousHub, GivesAllTheWeightsOfARoundOfAllThoughOthersStepMeanwhile) {
  HubRun run(asynchronous(2, 0));
  bool is_held = true;
  run.may_send = [&is_held](unsigned from, unsigned to) {
    return from != 0 || to != 2 || !is_held;
  };
  const auto may = [](unsigned rank, std::uint32_t, unsigned round) {
    return rank == 1 || round == 0;
  };
  run.run(2, small_number, may);
  EXPECT_EQ(run.ended(1, 0), 2U) << "it has stepped";
  EXPECT_EQ(run.ended(2, 0), 0U);
  is_held = false;
  run.run(2, small_number, may);
  for (std::uint32_t key = 0; key < run.model().keys().size(); ++key) {
    const std::vector<float> weights = run.weights(2, key);
    for (std::uint64_t i = 0; i < weights.size(); ++i) {
      ASSERT_EQ(weights[i], small_number(0, 0, key, i, 0)) << "key " << key;
    }
    EXPECT_NE(run.weights(1, key), weights);
  }
}

TEST(AsynchronousHub, IsLoadedWithTheStepsThatWereTaken) {
  // Adam's bias correction knows how many steps were taken.
  const auto weights_after = [](unsigned rounds, bool is_loaded) {
    HubRunSettings settings = asynchronous(2, 2, OptimizerRule::adam);
    HubRun run(settings);
    run.plane = [](unsigned round) { return 2 - round; };
    run.steps = [](unsigned rank) { return rank == 1 ? 3U : 0U; };  // one more than were taken
    run.kind = [is_loaded](unsigned, unsigned round) {
      if (is_loaded && round < 3) return PushKind::loaded;
      return round == 0 ? PushKind::weights : PushKind::gradients;
    };
    // Gradients are the same in every run; of what is loaded the state is zeros.
    const unsigned first_gradients = is_loaded ? 3 : 1;
    const auto may = [&](unsigned rank, std::uint32_t, unsigned round) {
      return rank == 1 || round < first_gradients;  // one step alone
    };
    run.run(
        rounds,
        [&](unsigned rank, unsigned trainer, std::uint32_t key, std::uint64_t element,
            unsigned round) {
          if (is_loaded && round < 2) return 0.0F;
          const bool weights = round < first_gradients;
          return weights ? small_number(rank, trainer, key, element, 0) : 1.0F;
        },
        may);
    return run.weights(1, 0);
  };
  const float first = weights_after(1, false)[0];
  const float stepped = weights_after(2, false)[0];
  const float loaded = weights_after(4, true)[0];
  EXPECT_NEAR(first - stepped, 0.25F, 1e-3F) << "the first step of Adam is the learning rate";
  EXPECT_NEAR(first - loaded, 0.25F * 0.1F / 0.271F * std::sqrt(0.002997F / 0.001F), 1e-3F)
      << "the third is corrected less";
}

TEST(AsynchronousHub, SavesNothingWhileAServerHasNotDoneAsManyRoundsAsTheOthers) {
  HubRun run(asynchronous(2, 4));
  run.kind = [](unsigned, unsigned round) {
    return round == 0 ? PushKind::weights : round == 1 ? PushKind::gradients : PushKind::saved;
  };
  run.plane = [](unsigned) { return 0U; };
  run.run(3, small_number,
          [](unsigned rank, std::uint32_t, unsigned round) { return rank == 1 || round == 0; });
  EXPECT_GT(run.refused(), 0U);
  EXPECT_EQ(run.ended(1, 0), 2U);
}

TEST(AsynchronousHub, SavesTheSamePlanesOnAllServersThoughSomeAreAtTheNextOne) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    HubRunSettings settings = asynchronous(3, 2, OptimizerRule::adam);
    settings.seed = seed;
    HubRun run(settings);
    run.kind = [](unsigned, unsigned round) {
      if (round == 0) return PushKind::weights;
      return round == 1 ? PushKind::gradients : PushKind::saved;
    };
    run.plane = [](unsigned round) { return 4 - round; };  // 2, 1, 0
    run.sends_again = true;
    run.run(2, small_number);
    using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
    std::map<Place, std::vector<std::uint8_t>> first;  // of each segment, what came first
    run.before = [&](const HubRun::Arrival& arrival) {
      if (arrival.from.stage != control::Stage::broadcast) return;
      const HubLabel& label = arrival.label;
      const auto [known, is_new] =
          first.try_emplace({label.chunk, label.plane, label.position}, arrival.payload);
      if (is_new) return;
      ++compared;
      EXPECT_EQ(known->second, arrival.payload) << "plane " << label.plane << ", seed " << seed;
    };
    run.run(5, small_number);
    EXPECT_EQ(run.ended(1, 0), 5U);
  }
  EXPECT_GT(compared, 0U);
}

TEST(AsynchronousHub, TakesNoGradientsBeforeItHasWeights) {
  HubRun run(asynchronous(2, 1));
  run.kind = [](unsigned, unsigned) { return PushKind::gradients; };
  run.run(1, small_number);
  EXPECT_GT(run.refused(), 0U);
  EXPECT_EQ(run.ended(1, 0), 0U);
}

TEST(AsynchronousHub, TakesAboutWhatItSaidThatItNeeds) {
  const HubRun run(asynchronous(4, 2, OptimizerRule::adam));
  EXPECT_GE(run.needed(0) * 11 / 10, run.memory(0));
}

}  // namespace
}  // namespace gradcube::dataplane
