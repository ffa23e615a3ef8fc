#include "control/training/training_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/training/training_model.h"

namespace gradcube::control::training {
namespace {

using testing::ElementsAre;

TEST(TrainingFigure, HasTheSpeedupOfEachPolicyOverTheNodes) {
  const model::Figure figure = mgwfbp_figure_9();
  EXPECT_EQ(figure.name, kFigure9);
  ASSERT_EQ(figure.panels.size(), 2u);
  for (const model::Panel& panel : figure.panels) {
    ASSERT_GE(panel.series.size(), 4u);
    EXPECT_EQ(panel.series[0].name, "linear");
    for (const std::size_t s : {1, 2, 3}) {
      EXPECT_THAT(panel.series[s].x, ElementsAre(4, 8, 16, 32, 64)) << panel.series[s].name;
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_LT(panel.series[s].y[i], panel.series[s].x[i]) << "no more than linear";
        EXPECT_GT(panel.series[s].y[i], 0.3 * panel.series[s].x[i]);
      }
    }
  }
  const double alone = gpu_seconds("resnet50");
  const auto iteration =
      iteration_of(make_network("resnet50"), alone, model::ring_cost(8, kPaperCosts));
  EXPECT_DOUBLE_EQ(figure.panels[1].series[1].y[1], 8 * alone / policy_times(iteration)[0].seconds);
}

TEST(TrainingFigure, ShowsWhatThePapersTextSaysOf64Nodes) {
  const model::Figure figure = mgwfbp_figure_9();
  const auto& googlenet = figure.panels[0].series;
  const auto& resnet50 = figure.panels[1].series;
  ASSERT_EQ(googlenet.size(), 6u);
  ASSERT_EQ(resnet50.size(), 7u);
  EXPECT_DOUBLE_EQ(googlenet[4].y[0], googlenet[3].y[4] / 1.78);
  EXPECT_DOUBLE_EQ(googlenet[5].y[0], googlenet[3].y[4] / 1.35);
  EXPECT_DOUBLE_EQ(resnet50[4].y[0], resnet50[3].y[4] / 1.75);
  EXPECT_DOUBLE_EQ(resnet50[5].y[0], resnet50[3].y[4] / 1.45);
  EXPECT_DOUBLE_EQ(resnet50[6].y[0], 35.2);
  for (std::size_t s = 4; s < 7; ++s) {
    EXPECT_EQ(resnet50[s].origin, model::Origin::paper);
    EXPECT_THAT(resnet50[s].x, ElementsAre(64));
  }
}

}  // namespace
}  // namespace gradcube::control::training
