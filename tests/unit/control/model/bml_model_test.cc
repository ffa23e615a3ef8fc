#include "control/model/bml_model.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "control/model/hips_model.h"

namespace gradcube::control::model {
namespace {

// The worked example of section 3.2, in pieces: 18 of them make T_F.
TEST(BmlModel, TakesTheStepsOfThePapersExample) {
  const double t_c = bml_piece_seconds(3, 2, 1);
  EXPECT_DOUBLE_EQ(t_c, 1.0 / 18);
  EXPECT_DOUBLE_EQ(bml_step_seconds(3, 2, 0, 1), 6 * t_c);
  EXPECT_DOUBLE_EQ(bml_step_seconds(3, 2, 1, 1), 2 * t_c);
  EXPECT_DOUBLE_EQ(bml_gst(3, 2, 1), 16 * t_c);
  EXPECT_DOUBLE_EQ(bml_gst(3, 2, 1), 8.0 / 9);
}

TEST(BmlModel, IsTheSumOfTheStepsOfBothStages) {
  for (std::uint64_t n = 2; n <= 5; ++n) {
    for (unsigned k = 1; k <= 4; ++k) {
      double stage = 0;
      for (unsigned w = 0; w < k; ++w) stage += bml_step_seconds(n, k, w, 0.08);
      EXPECT_NEAR(bml_gst(n, k, 0.08), 2 * stage, 1e-15) << n << "," << k;
    }
  }
}

TEST(BmlModel, SumsTheSharesOfAGeneralizedBcubesLevels) {
  // Level 0 of radix 2: thread 0 sends half of its half, thread 1 half of what level 1 left it, a
  // third. Level 1 of radix 3: thread 1 two thirds of its half, thread 0 two thirds of a half.
  const std::vector<std::uint64_t> radices = {2, 3};
  EXPECT_DOUBLE_EQ(bml_level_share(radices, 0), (1.0 / 2 + 1.0 / 6) / 2);
  EXPECT_DOUBLE_EQ(bml_level_share(radices, 1), (2.0 / 3 + 1.0 / 3) / 2);
  EXPECT_DOUBLE_EQ(bml_gst(radices, 10), 10);
  EXPECT_THROW(bml_level_share(radices, 2), std::invalid_argument);
}

TEST(BmlModel, SendsEachGradientOnceOverAllLevels) {
  const std::vector<std::uint64_t> radices = {4, 2, 5, 3};
  double sum = 0;
  for (unsigned level = 0; level < 4; ++level) sum += bml_level_share(radices, level);
  EXPECT_DOUBLE_EQ(sum, 119.0 / 120);
}

TEST(BmlModel, IsThePapersWhereAllLevelsHaveOneRadix) {
  for (unsigned k = 1; k <= 4; ++k) {
    EXPECT_DOUBLE_EQ(bml_gst(std::vector<std::uint64_t>(k, 4), 0.5), bml_gst(4, k, 0.5));
  }
}

TEST(BmlModel, IsAKthOfTheTimeOnAFatTree) {
  for (unsigned k = 1; k <= 4; ++k) {
    std::uint64_t servers = 1;
    for (unsigned i = 0; i < k; ++i) servers *= 4;
    EXPECT_DOUBLE_EQ(bml_gst(4, k, 0.5), fat_tree_gst(servers, 0.5) / k);
    EXPECT_DOUBLE_EQ(bml_gst(4, k, 0.5), fat_tree_gst(servers, 0.5, k)) << "with k NICs";
  }
}

TEST(BmlModel, GivesAFatTreeTheTimeOfSectionTwo) {
  EXPECT_DOUBLE_EQ(fat_tree_gst(2, 3), 3);
  EXPECT_DOUBLE_EQ(fat_tree_gst(9, 1), 16.0 / 9);
  EXPECT_DOUBLE_EQ(fat_tree_gst(16, 1), 1.875);
}

// Section 3.3: PS on BCube "will double the GST"; the networks are those of Figure 5.
TEST(BmlModel, IsAboutHalfOfPsOnTheSameBcube) {
  const auto ratio = [](std::uint64_t n) {
    return hips_mesh_gst(HipsNetwork::bcube, n, 2, 1) / bml_gst(n, 2, 1);
  };
  EXPECT_DOUBLE_EQ(ratio(4), 1.6);
  EXPECT_NEAR(ratio(32), 1.94, 0.001);
}

TEST(BmlModel, CountsTheSwitchesOfSection3Dot1) {
  EXPECT_EQ(bcube_switches(3, 2), 6u);
  EXPECT_EQ(bcube_switches(16, 4), 4u * 4096);
  EXPECT_DOUBLE_EQ(fat_tree_switches(16, 4), 20);
  EXPECT_DOUBLE_EQ(fat_tree_switches(1024, 16), 320);
  EXPECT_DOUBLE_EQ(fat_tree_switches(9, 3, 2), 30) << "with two NICs at every server";
}

TEST(BmlModel, NeedsFortyToEightyPercentOfTheSwitchesOfAFatTree) {
  for (unsigned k = 2; k <= 4; ++k) {
    std::uint64_t servers = 1;
    for (unsigned i = 0; i < k; ++i) servers *= 8;
    EXPECT_DOUBLE_EQ(static_cast<double>(bcube_switches(8, k)) / fat_tree_switches(servers, 8),
                     k / 5.0);
  }
}

TEST(BmlModel, RefusesWhatIsNoNetwork) {
  EXPECT_THROW(bml_gst(1, 2, 1), std::invalid_argument);
  EXPECT_THROW(bml_gst(2, 0, 1), std::invalid_argument);
  EXPECT_THROW(bml_gst(100'000, 2, 1), std::invalid_argument) << "too many servers";
  EXPECT_THROW(bml_piece_seconds(1, 1, 1), std::invalid_argument);
  EXPECT_THROW(bml_step_seconds(3, 2, 2, 1), std::invalid_argument);
  EXPECT_THROW(fat_tree_gst(1, 1), std::invalid_argument);
  EXPECT_THROW(fat_tree_gst(4, 1, 0), std::invalid_argument);
  EXPECT_THROW(bcube_switches(1, 2), std::invalid_argument);
  EXPECT_THROW(fat_tree_switches(1, 4), std::invalid_argument);
  EXPECT_THROW(fat_tree_switches(4, 1), std::invalid_argument);
  EXPECT_THROW(fat_tree_switches(4, 4, 0), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::control::model
