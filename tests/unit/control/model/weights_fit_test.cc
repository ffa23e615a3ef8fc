#include "control/model/weights_fit.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradcube::control::model {
namespace {

std::vector<WeighedRow> rows_of(const std::vector<std::array<double, 3>>& xs,
                                const std::array<double, 3>& weights) {
  std::vector<WeighedRow> rows;
  for (const auto& x : xs) {
    rows.push_back({x, x[0] * weights[0] + x[1] * weights[1] + x[2] * weights[2]});
  }
  return rows;
}

const std::vector<std::array<double, 3>> kPlans = {
    {4, 384, 1}, {8, 128, 1}, {12, 192, 1}, {12, 384, 1}};

TEST(FittedWeights, AreFoundAgain) {
  const std::array<double, 3> weights = {29e-6, 0.5e-6, 89e-6};
  const auto found = fitted_weights(rows_of(kPlans, weights));
  for (unsigned i = 0; i < 3; ++i) EXPECT_NEAR(found[i], weights[i], 1e-10) << i;
}

TEST(FittedWeights, AreNotNegative) {
  const auto found = fitted_weights(rows_of(kPlans, {29e-6, -0.02e-6, 89e-6}));
  EXPECT_EQ(found[1], 0);
  EXPECT_GT(found[0], 0);
  EXPECT_GT(found[2], 0);
}

TEST(FittedWeights, AreTheFirstWhereRowsDoNotTellThemApart) {
  EXPECT_EQ(fitted_weights(rows_of({{2, 4, 1}}, {20, 10, 0})), (std::array<double, 3>{40, 0, 0}));
  EXPECT_EQ(fitted_weights({}), (std::array<double, 3>{}));
  EXPECT_EQ(fitted_weights(std::vector<WeighedRow>{{{1, 1, 1}, 0}}), (std::array<double, 3>{}));
}

TEST(FittedWeights, HaveTheLeastRelativeErrors) {
  const std::vector<WeighedRow> rows = {{{1, 0, 0}, 1.1}, {{1000, 0, 0}, 900}};
  // Minimises (w / 1.1 - 1)^2 + (w / 0.9 - 1)^2.
  EXPECT_NEAR(fitted_weights(rows)[0], (1 / 1.1 + 1 / 0.9) / (1 / 1.21 + 1 / 0.81), 1e-12);
}

}  // namespace
}  // namespace gradcube::control::model
