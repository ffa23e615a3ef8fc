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
}

// Eq. 7, by hand: layer 4 takes 6 from 11 on, and layer 3 waits for it.
TEST(IterationOfTraining, SendsALayerWhenItIsReadyAndTheOneBeforeHasTravelled) {
  EXPECT_EQ(end_seconds(kIteration.cost, 8, 11, 0), 17);
  EXPECT_EQ(end_seconds(kIteration.cost, 6, 13, 17), 22);
}

}  // namespace
}  // namespace gradcube::control::merge
