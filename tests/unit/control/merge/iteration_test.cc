#include "control/merge/iteration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcube::control::merge {
namespace {

using testing::ElementsAre;

// Of four layers, as MG-WFBP's Fig. 2 to 4.
const Iteration kIteration{
    .cost = {.a = 2, .b = 0.5}, .forward_seconds = 10, .layers = {{2, 4}, {4, 3}, {6, 2}, {8, 1}}};

TEST(IterationOfTraining, HasALayersGradientsReadyWhenItsPartOfTheBackwardPassEnds) {
  EXPECT_THAT(ready_seconds(kIteration), ElementsAre(20, 16, 13, 11));
  EXPECT_EQ(computing_seconds(kIteration), 20);
}

// Eq. 7, by hand: layer 4 takes 6 from 11 on, layer 3 waits for it, layer 2 for that.
TEST(IterationOfTraining, SendsALayerWhenItIsReadyAndTheOneBeforeHasTravelled) {
  const std::vector<MessageTimes> each = times(kIteration, {{3, 3}, {2, 2}, {1, 1}, {0, 0}});
  ASSERT_EQ(each.size(), 4u);
  EXPECT_EQ(each[0].begin, 11);
  EXPECT_EQ(each[0].end, 17);
  EXPECT_EQ(each[1].ready, 13);
  EXPECT_EQ(each[1].begin, 17);
  EXPECT_EQ(each[1].end, 22);
  EXPECT_EQ(each[2].end, 26);
  EXPECT_EQ(each[3].ready, 20);
  EXPECT_EQ(each[3].end, 29);
  EXPECT_EQ(iteration_seconds(kIteration, {{3, 3}, {2, 2}, {1, 1}, {0, 0}}), 29);
}

// Layers 3 and 2 leave when 2 is ready, and need one startup time less.
TEST(IterationOfTraining, SendsMergedLayersWhenTheLastOfThemInThePassIsReady) {
  const std::vector<MessageTimes> each = times(kIteration, {{3, 3}, {1, 2}, {0, 0}});
  ASSERT_EQ(each.size(), 3u);
  EXPECT_EQ(each[1].ready, 16);
  EXPECT_EQ(each[1].begin, 17);
  EXPECT_EQ(each[1].end, 24);
  EXPECT_EQ(each[2].end, 27);
}

// Eq. 11: what is left is the first layer's own message.
TEST(IterationOfTraining, HidesMessagesThatTakeLessThanThePassOfTheNextLayer) {
  Iteration iteration = kIteration;
  iteration.cost = {.a = 0.25, .b = 0.0625};
  const double first = iteration.cost.seconds(2);
  EXPECT_EQ(iteration_seconds(iteration, {{3, 3}, {2, 2}, {1, 1}, {0, 0}}), 20 + first);
}

// Eq. 3.
TEST(IterationOfTraining, OverlapsNothingIfAllLayersShareAMessage) {
  EXPECT_EQ(iteration_seconds(kIteration, {{0, 3}}), 20 + 2 + 0.5 * 20);
}

}  // namespace
}  // namespace gradcube::control::merge
