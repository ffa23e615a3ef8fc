// What the plans' busiest links carry, by the verifier's count, is what the papers' models say.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/model/blueconnect_model.h"
#include "control/model/bml_model.h"
#include "control/model/gst_table.h"
#include "control/model/hips_model.h"
#include "control/model/transfer_time.h"
#include "control/plan/algorithms.h"
#include "control/plan/verify.h"

namespace gradcube::control::model {
namespace {

std::string cube(std::uint64_t n, unsigned k) {
  return "bcube:" + std::to_string(n) + "," + std::to_string(k);
}

VerifyReport report_of(const std::string& algorithm, const std::string& spec) {
  return verify(make_plan(algorithm, parse_topology(spec, "test"), "test"));
}

// The share of the gradient that the busiest link carries, both stages together: GST / T_F.
double busiest_share(const std::string& algorithm, const std::string& spec) {
  const VerifyReport report = report_of(algorithm, spec);
  const std::uint64_t most =
      *std::max_element(report.link_pieces.begin(), report.link_pieces.end());
  return static_cast<double>(most) / report.pieces;
}

TEST(PlansAndModels, AgreeOnTheBusiestLinkOfABcube) {
  for (const std::uint64_t n : {2u, 3u, 4u}) {
    for (unsigned k = 1; k <= 3; ++k) {
      const std::string spec = cube(n, k);
      SCOPED_TRACE(spec);
      EXPECT_DOUBLE_EQ(busiest_share("bml", spec), bml_gst(n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("hips:mesh", spec), hips_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("hips:ring", spec), hips_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("ring", spec), hips_ring_gst(HipsNetwork::bcube, n, k, 1));
      EXPECT_DOUBLE_EQ(busiest_share("mesh", spec), hips_mesh_gst(HipsNetwork::bcube, n, k, 1));
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

// A root receives in the one stage and sends in the other, so its link carries half of it each way.
TEST(PlansAndModels, AgreeOnTheBusiestLinkOfARoot) {
  for (const std::uint64_t n : {2u, 3u, 4u}) {
    EXPECT_DOUBLE_EQ(2 * busiest_share("ps", cube(n, 1)), hips_root_gst(n, 1, 1));
    for (unsigned k = 1; k <= 3; ++k) {
      EXPECT_DOUBLE_EQ(2 * busiest_share("hips:root", cube(n, k)), hips_root_gst(n, k, 1));
    }
  }
}

// Its levels work one after the other.
TEST(PlansAndModels, AgreeOnTheLevelsOfBlueConnect) {
  for (const std::uint64_t n : {2u, 3u, 4u}) {
    for (unsigned k = 1; k <= 3; ++k) {
      SCOPED_TRACE(testing::Message() << "bcube:" << n << "," << k);
      const VerifyReport report = report_of("blueconnect", cube(n, k));
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

// A torus has half of a BCube's times, because each server has two cables per dimension.
TEST(PlansAndModels, AgreeOnTheBusiestCableOfATorus) {
  for (const std::uint64_t n : {3u, 4u, 5u}) {
    for (unsigned h = 1; h <= (n == 3 ? 3U : 2U); ++h) {
      const std::string spec = "torus:" + std::to_string(n) + "," + std::to_string(h);
      SCOPED_TRACE(spec);
      EXPECT_NEAR(busiest_share("hips:ring", spec), hips_gst(HipsNetwork::torus, n, h, 1), 1e-12);
      EXPECT_NEAR(busiest_share("ring", spec), hips_ring_gst(HipsNetwork::torus, n, h, 1), 1e-12);
      EXPECT_GE(busiest_share("mesh", spec), hips_mesh_gst(HipsNetwork::torus, n, h, 1) - 1e-12);
      double share = 0;
      const VerifyReport report = report_of("blueconnect", spec);
      for (const std::uint64_t pieces : report.link_pieces) {
        share += static_cast<double>(pieces) / report.pieces;
      }
      std::vector<BlueConnectStage> stages(h + 1, {n, 1});
      stages[0].p = 1;
      EXPECT_NEAR(share, blueconnect_torus_seconds(stages, 1, 0) / transfer_seconds(1, 1), 1e-12);
    }
  }
  // In a ring of three all are adjacent: the lower bound is met.
  EXPECT_NEAR(busiest_share("mesh", "torus:3,1"), hips_mesh_gst(HipsNetwork::torus, 3, 1, 1),
              1e-12);
}

}  // namespace
}  // namespace gradcube::control::model
