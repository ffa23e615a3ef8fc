#include "control/model/hips_model.h"

#include <gtest/gtest.h>
#include <stdexcept>

#include "control/model/bml_model.h"

namespace gradcube::control::model {
namespace {

constexpr HipsNetwork kNetworks[] = {HipsNetwork::bcube, HipsNetwork::torus};

// Section 4.2, of (n, h) = (4,2), (8,3) and (16,4): "HiPS reduces the GST by 37.5%~73.3% compared
// with PSS/MS and by 50.0%~75.0% compared with RS", on both networks.
TEST(HipsModel, ReducesTheTimeByThePapersPercentages) {
  for (const HipsNetwork network : kNetworks) {
    const auto less_than_mesh = [&](std::uint64_t n, unsigned h) {
      return 1 - hips_gst(network, n, h, 1) / hips_mesh_gst(network, n, h, 1);
    };
    const auto less_than_ring = [&](std::uint64_t n, unsigned h) {
      return 1 - hips_gst(network, n, h, 1) / hips_ring_gst(network, n, h, 1);
    };
    EXPECT_DOUBLE_EQ(less_than_mesh(4, 2), 0.375);
    EXPECT_NEAR(less_than_mesh(16, 4), 0.733, 0.0005);
    EXPECT_DOUBLE_EQ(less_than_ring(4, 2), 0.5);
    EXPECT_NEAR(less_than_ring(8, 3), 2.0 / 3, 1e-12);
    EXPECT_DOUBLE_EQ(less_than_ring(16, 4), 0.75);
  }
}

TEST(HipsModel, HasEveryCellOfTable3) {
  const double w_by_b = 0.08;
  EXPECT_DOUBLE_EQ(hips_gst(HipsNetwork::bcube, 3, 2, w_by_b), 2 * 8.0 / 9 / 2 * w_by_b);
  EXPECT_DOUBLE_EQ(hips_gst(HipsNetwork::torus, 3, 2, w_by_b), 8.0 / 9 / 2 * w_by_b);
  EXPECT_DOUBLE_EQ(hips_mesh_gst(HipsNetwork::bcube, 3, 2, w_by_b), 2 * 2.0 / 3 * w_by_b);
  EXPECT_DOUBLE_EQ(hips_mesh_gst(HipsNetwork::torus, 3, 2, w_by_b), 2.0 / 3 * w_by_b);
  EXPECT_DOUBLE_EQ(hips_ring_gst(HipsNetwork::bcube, 3, 2, w_by_b), 2 * 8.0 / 9 * w_by_b);
  EXPECT_DOUBLE_EQ(hips_ring_gst(HipsNetwork::torus, 3, 2, w_by_b), 8.0 / 9 * w_by_b);
}

// Section 4.1 takes the sum over the stages: the reading of the closed form depends on it.
TEST(HipsModel, IsTheSumOverTheStages) {
  for (const std::uint64_t n : {2u, 3u, 8u}) {
    for (unsigned h = 1; h <= 5; ++h) {
      const auto group = static_cast<double>(n);
      double sum = 0, share = 1;
      for (unsigned j = 0; j < h; ++j, share /= group) sum += share;
      EXPECT_NEAR(hips_gst(HipsNetwork::bcube, n, h, 1), 2.0 / h * (group - 1) / group * sum,
                  1e-12);
    }
  }
}

TEST(HipsModel, GivesHierarchicalMeshTheTimeOfBml) {
  for (const std::uint64_t n : {2u, 3u, 16u}) {
    for (unsigned h = 1; h <= 4; ++h) {
      EXPECT_DOUBLE_EQ(hips_gst(HipsNetwork::bcube, n, h, 0.08), bml_gst(n, h, 0.08));
    }
  }
}

TEST(HipsModel, WithOneLevelIsTheFlatAlgorithmOfAFatTree) {
  for (const std::uint64_t n : {2u, 9u, 64u}) {
    const double flat = fat_tree_gst(n, 1);
    EXPECT_DOUBLE_EQ(hips_gst(HipsNetwork::bcube, n, 1, 1), flat);
    EXPECT_DOUBLE_EQ(hips_mesh_gst(HipsNetwork::bcube, n, 1, 1), flat);
    EXPECT_DOUBLE_EQ(hips_ring_gst(HipsNetwork::bcube, n, 1, 1), flat);
  }
}

TEST(HipsModel, LetsARootReceiveFromAllOthersOfItsGroupAndAnswerThem) {
  EXPECT_DOUBLE_EQ(hips_root_gst(9, 1, 0.5), 8.0) << "a central parameter server";
  EXPECT_DOUBLE_EQ(hips_root_gst(3, 2, 1), 4.0);
  EXPECT_DOUBLE_EQ(hips_root_gst(2, 3, 1), 2.0);
}

TEST(HipsModel, RefusesWhatIsNoGroup) {
  for (const HipsNetwork network : kNetworks) {
    EXPECT_THROW(hips_gst(network, 1, 2, 1), std::invalid_argument);
    EXPECT_THROW(hips_gst(network, 2, 0, 1), std::invalid_argument);
    EXPECT_THROW(hips_mesh_gst(network, 1, 2, 1), std::invalid_argument);
    EXPECT_THROW(hips_ring_gst(network, 1, 2, 1), std::invalid_argument);
  }
  EXPECT_THROW(hips_root_gst(1, 2, 1), std::invalid_argument);
  EXPECT_THROW(hips_root_gst(3, 0, 1), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::control::model
