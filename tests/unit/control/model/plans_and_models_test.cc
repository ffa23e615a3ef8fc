// What the plans' busiest links carry, by the verifier's count, is what the papers' models say.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/model/blueconnect_model.h"
#include "control/model/bml_model.h"
#include "control/model/hips_model.h"
#include "control/model/transfer_time.h"
#include "control/plan/algorithms.h"
#include "control/plan/verify.h"

namespace gradcube::control::model {
namespace {

VerifyReport report_of(const std::string& algorithm, std::uint64_t n, unsigned k) {
  const Topology cube =
      parse_topology("bcube:" + std::to_string(n) + "," + std::to_string(k), "test");
  return verify(make_plan(algorithm, cube, "test"));
}

// The share of the gradient that the busiest link carries, both stages together: GST / T_F.
double busiest_share(const std::string& algorithm, std::uint64_t n, unsigned k) {
  const VerifyReport report = report_of(algorithm, n, k);
  const std::uint64_t most =
      *std::max_element(report.link_pieces.begin(), report.link_pieces.end());
  return static_cast<double>(most) / report.pieces;
}

TEST(PlansAndModels, AgreeOnTheBusiestLinkOfABcube) {
  for (const std::uint64_t n : {2u, 3u, 4u}) {
    for (unsigned k = 1; k <= 3; ++k) {
      SCOPED_TRACE(testing::Message() << "bcube:" << n << "," << k);
      EXPECT_DOUBLE_EQ(busiest_share("bml", n, k), bml_gst(n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("hips:mesh", n, k), hips_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("hips:ring", n, k), hips_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("ring", n, k), hips_ring_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("mesh", n, k), hips_mesh_gst(HipsNetwork::bcube, n, k, 1));
    }
  }
}

// A root receives in the one stage and sends in the other, so its link carries half of it each way.
TEST(PlansAndModels, AgreeOnTheBusiestLinkOfARoot) {
  for (const std::uint64_t n : {2u, 3u, 4u}) {
    EXPECT_DOUBLE_EQ(2 * busiest_share("ps", n, 1), hips_root_gst(n, 1, 1));
    for (unsigned k = 1; k <= 3; ++k) {
      EXPECT_DOUBLE_EQ(2 * busiest_share("hips:root", n, k), hips_root_gst(n, k, 1));
    }
  }
}

// Its levels work one after the other.
TEST(PlansAndModels, AgreeOnTheLevelsOfBlueConnect) {
  for (const std::uint64_t n : {2u, 3u, 4u}) {
    for (unsigned k = 1; k <= 3; ++k) {
      SCOPED_TRACE(testing::Message() << "bcube:" << n << "," << k);
      const VerifyReport report = report_of("blueconnect", n, k);
      double share = 0;
      for (const std::uint64_t pieces : report.link_pieces) {
        share += static_cast<double>(pieces) / report.pieces;
      }
      std::vector<BlueConnectStage> stages(k + 1, {n, 1});
      stages[0].p = 1;
      EXPECT_NEAR(share, blueconnect_torus_seconds(stages, 1, 0) / transfer_seconds(1, 1), 1e-12);
    }
  }
}

}  // namespace
}  // namespace gradcube::control::model
