// What a hub's exchanges say that they need, before there are any.

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "tests/unit/control/plans.h"
#include "tests/unit/dataplane/hub/hub_places.h"
#include "tests/unit/dataplane/hub/hub_run.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using aggregation::OptimizerRule;

// A few percent, and what a chunk or a key takes where there are only few.
void expect_close(std::uint64_t needed, std::uint64_t memory, const std::string& where) {
  const std::uint64_t slack = memory / 20 + 1024;
  EXPECT_GE(needed + slack, memory) << where;
  EXPECT_LE(needed, memory + slack) << where;
}

TEST(HubMemory, IsAboutWhatWasSaidToBeNeeded) {
  for (const Place& place : kPlaces) {
    for (const OptimizerRule rule :
         {OptimizerRule::sgd, OptimizerRule::momentum, OptimizerRule::adam}) {
      for (const DataType type : {DataType::float32, DataType::bfloat16}) {
        const HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                          .keys = {{"first", 20'000, type}, {"second", 3'001, type}},
                          .optimizer = settings_of(rule),
                          .lcores = 2});
        for (unsigned rank = 0; rank < run.ranks(); ++rank) {
          expect_close(run.needed(rank), run.memory(rank), place.text());
        }
      }
    }
  }
}

TEST(HubMemory, IsAboutWhatWasSaidToBeNeededOfManySmallKeys) {
  std::vector<control::HubKey> keys;
  for (unsigned i = 0; i < 500; ++i) {
    keys.push_back({"key" + std::to_string(i), i % 70 + 1, DataType::float16});
  }
  for (const Place& place : kPlaces) {
    const HubRun run({.plan = control::plan_of(place.algorithm, place.topology),
                      .keys = keys,
                      .optimizer = settings_of(OptimizerRule::adamw)});
    for (unsigned rank = 0; rank < run.ranks(); ++rank) {
      expect_close(run.needed(rank), run.memory(rank), place.text());
    }
  }
}

}  // namespace
}  // namespace gradcube::dataplane
