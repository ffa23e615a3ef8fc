#include "control/model/phub_model.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string_view>

namespace gradcube::control::model {
namespace {

constexpr double kGbit = 1e9;

// A row of Table 2, in Gbit/s.
struct Row {
  std::string_view network;
  double cc;
  double cs;
  double ncc;
  double ncs;
};

constexpr Row kTable2[] = {{"resnet269", 122, 31, 140, 17},
                           {"inception-v3", 44, 11, 50, 6},
                           {"googlenet", 40, 10, 46, 6},
                           {"alexnet", 1232, 308, 1408, 176}};

double gbit(PsLayout layout, double M, double T) {
  return hiding_bits_per_second(layout, 8, M, T) / kGbit;
}

// From the M/T that its first column has; the others are rounded to whole Gbit/s.
TEST(PhubModel, HasTheFourColumnsOfTable2) {
  for (const Row& row : kTable2) {
    SCOPED_TRACE(row.network);
    const double M = row.cc / 14 * kGbit / 8;
    EXPECT_NEAR(gbit(PsLayout::cc, M, 1), row.cc, 1e-9);
    EXPECT_NEAR(gbit(PsLayout::cs, M, 1), row.cs, 0.6);
    EXPECT_NEAR(gbit(PsLayout::ncc, M, 1), row.ncc, 0.6);
    EXPECT_NEAR(gbit(PsLayout::ncs, M, 1), row.ncs, 0.5);
  }
}

TEST(PhubModel, IsWithin11PercentOfTable2WithTheTimesOfSection42) {
  for (const Row& row : kTable2) {
    for (const PhubNetwork& network : kPhubNetworks) {
      if (network.name != row.network) continue;
      const double here = gbit(PsLayout::cc, network.bytes, network.seconds);
      EXPECT_GT(here, row.cc) << row.network;
      EXPECT_LT(here, 1.11 * row.cc) << row.network;
    }
  }
}

// "each network interface must process roughly 2x the network traffic" if servers are colocated
// (section 2.1), and N times with one server for all.
TEST(PhubModel, HasTwiceTheTrafficWhereManyWorkersAndServersShareHosts) {
  const auto at = [](PsLayout layout) { return hiding_bits_per_second(layout, 1000, 1, 1); };
  EXPECT_NEAR(at(PsLayout::cs) / at(PsLayout::ncs), 2, 0.01);
  EXPECT_DOUBLE_EQ(at(PsLayout::ncc) / at(PsLayout::ncs), 1000);
  EXPECT_DOUBLE_EQ(at(PsLayout::ncs), 16);
}

// By hand: 8 workers in each of 4 racks, 1 GB, 100 Gbit/s, 20 Gbit/s and 10 Gbit/s.
TEST(PhubModel, ComparesHierarchicalReductionWithAFlatOne) {
  const HubRates rates{.hub = 100e9, .core = 20e9, .worker = 10e9};
  const HierarchyTimes times = hierarchy_times(8, 4, rates, 1e9);
  EXPECT_DOUBLE_EQ(times.flat, 8 * 0.75 * 0.4);
  // The workers' links take longer than the hub's, and the core is behind the hub.
  EXPECT_DOUBLE_EQ(times.hierarchical, 0.8 + 0.75 * 0.4);
  EXPECT_TRUE(times.pays());
  // A slow hub: 8 gradients at 50 Gbit/s.
  EXPECT_DOUBLE_EQ(hierarchy_times(8, 4, {50e9, 80e9, 10e9}, 1e9).hierarchical, 1.28 + 0.75 * 0.16);
}

// A core as fast as all workers together leaves nothing to save.
TEST(PhubModel, FindsNoBenefitInAHierarchyWithoutOversubscription) {
  EXPECT_FALSE(hierarchy_times(8, 4, {.hub = 80e9, .core = 80e9, .worker = 10e9}, 1e9).pays());
  EXPECT_TRUE(hierarchy_times(8, 4, {.hub = 80e9, .core = 40e9, .worker = 10e9}, 1e9).pays());
  EXPECT_FALSE(hierarchy_times(2, 2, {.hub = 80e9, .core = 10e9, .worker = 10e9}, 1e9).pays());
}

TEST(PhubModel, RefusesWhatIsNoSetup) {
  const HubRates rates{.hub = 1, .core = 1, .worker = 1};
  EXPECT_THROW(hiding_bits_per_second(PsLayout::cc, 1, 1, 1), std::invalid_argument);
  EXPECT_THROW(hiding_bits_per_second(PsLayout::cc, 8, 0, 1), std::invalid_argument);
  EXPECT_THROW(hiding_bits_per_second(PsLayout::cc, 8, 1, 0), std::invalid_argument);
  EXPECT_THROW(hierarchy_times(8, 1, rates, 1), std::invalid_argument);
  EXPECT_THROW(hierarchy_times(1, 8, rates, 1), std::invalid_argument);
  EXPECT_THROW(hierarchy_times(8, 8, {0, 1, 1}, 1), std::invalid_argument);
  EXPECT_THROW(hierarchy_times(8, 8, {1, 0, 1}, 1), std::invalid_argument);
  EXPECT_THROW(hierarchy_times(8, 8, {1, 1, 0}, 1), std::invalid_argument);
  EXPECT_THROW(hierarchy_times(8, 8, rates, 0), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::control::model
