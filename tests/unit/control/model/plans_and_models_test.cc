// What the plans' busiest links carry, by the verifier's count, is what the papers' models say.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "control/model/bml_model.h"
#include "control/model/gst_table.h"
#include "control/model/hips_model.h"
#include "control/plan/algorithms.h"
#include "control/plan/verify.h"

namespace gradcube::control::model {
namespace {

// The share of the gradient that the busiest link carries, both stages together: GST / T_F.
double busiest_share(const std::string& algorithm, const std::string& spec) {
  const VerifyReport report = verify(make_plan(algorithm, parse_topology(spec, "test"), "test"));
  const std::uint64_t most =
      *std::max_element(report.link_pieces.begin(), report.link_pieces.end());
  return static_cast<double>(most) / report.pieces;
}

TEST(PlansAndModels, AgreeOnTheBusiestLinkOfABcube) {
  for (const std::uint64_t n : {2u, 3u, 4u}) {
    for (unsigned k = 1; k <= 3; ++k) {
      const std::string cube = "bcube:" + std::to_string(n) + "," + std::to_string(k);
      SCOPED_TRACE(cube);
      EXPECT_DOUBLE_EQ(busiest_share("bml", cube), bml_gst(n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("hips:mesh", cube), hips_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("hips:ring", cube), hips_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("ring", cube), hips_ring_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("mesh", cube), hips_mesh_gst(HipsNetwork::bcube, n, k, 1));
    }
  }
}

TEST(PlansAndModels, AgreeOnTheBusiestLinkOfAGeneralizedBcube) {
  for (const char* spec :
       {"bcube:3x2", "bcube:2x5", "bcube:4x3x2", "bcube:2x4x3", "bcube:3x2x2x2"}) {
    SCOPED_TRACE(spec);
    const ModelTopology topology = parse_model_topology(spec, "test");
    for (const char* algorithm : {"bml", "hips:mesh", "hips:ring", "ring", "mesh"}) {
      const auto row = gst_row(topology, algorithm, {.bytes = 1e9, .bits_per_second = 1e9});
      EXPECT_NEAR(busiest_share(algorithm, spec), row.value().relative, 1e-12) << algorithm;
    }
  }
}

}  // namespace
}  // namespace gradcube::control::model
