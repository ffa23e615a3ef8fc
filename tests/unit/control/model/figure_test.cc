#include "control/model/figure.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace gradcube::control::model {
namespace {

const Series& series(const Panel& panel, const std::string& name) {
  for (const Series& each : panel.series) {
    if (each.name == name) return each;
  }
  throw std::invalid_argument(name);
}

// By how much less `a` is than `b`, in percent.
double reduction(double a, double b) { return 100 * (1 - a / b); }

TEST(Figure, IsCompleteWhateverItsName) {
  for (const std::string_view name : figure_names()) {
    SCOPED_TRACE(name);
    const Figure figure = make_figure(name, {.latency_seconds = 1e-6});
    EXPECT_EQ(figure.name, name);
    ASSERT_FALSE(figure.panels.empty());
    for (const Panel& panel : figure.panels) {
      std::set<std::string> names;
      for (const Series& each : panel.series) {
        EXPECT_TRUE(names.insert(each.name).second) << each.name;
        EXPECT_FALSE(each.y.empty()) << each.name;
        EXPECT_EQ(each.x.size(), each.y.size()) << each.name;
        EXPECT_TRUE(std::all_of(each.y.begin(), each.y.end(), [](double y) { return y > 0; }));
        for (const double x : each.x) {
          EXPECT_TRUE(panel.categories.empty() || x < static_cast<double>(panel.categories.size()));
        }
      }
    }
  }
  EXPECT_THROW(make_figure("hips-8"), std::invalid_argument);
}

// "HiPS reduces the GST by 37.5%~73.3% compared with PSS/MS and by 50.0%~75.0% compared with RS"
// (HiPS, section 4.2), as for BCube and Torus.
TEST(Figure, HasTheReductionsOfTheHipsPaper) {
  for (const char* name : {"hips-6", "hips-7"}) {
    SCOPED_TRACE(name);
    const Panel panel = make_figure(name).panels.at(0);
    EXPECT_EQ(panel.categories, (std::vector<std::string>{"(4,2)", "(8,3)", "(16,4)"}));
    const Series& hips = series(panel, "HiPS");
    const Series& mesh = panel.series.at(1);
    const Series& ring = series(panel, "RS");
    EXPECT_NEAR(reduction(hips.y[0], mesh.y[0]), 37.5, 0.05);
    EXPECT_NEAR(reduction(hips.y[2], mesh.y[2]), 73.3, 0.05);
    EXPECT_NEAR(reduction(hips.y[0], ring.y[0]), 50.0, 0.05);
    EXPECT_NEAR(reduction(hips.y[1], ring.y[1]), 66.7, 0.05);
    EXPECT_NEAR(reduction(hips.y[2], ring.y[2]), 75.0, 0.05);
  }
  EXPECT_DOUBLE_EQ(make_figure("hips-6").panels[0].series[0].y[0], 0.9375);
  EXPECT_DOUBLE_EQ(make_figure("hips-7").panels[0].series[0].y[0], 0.46875);
}

// BML on BCube takes 1/k of PS on Fat-Tree (section 3.2), and on Fat-Tree both take the same (3.3).
TEST(Figure, HasTheFourCombinationsOfBmlsFigure5) {
  const Panel panel = make_figure("bml-5").panels.at(0);
  ASSERT_EQ(panel.series.size(), 4u);
  const Series& bml = series(panel, "BCube, BML");
  const Series& fat_tree = series(panel, "Fat-Tree, PS");
  for (const unsigned servers : {0U, 1U}) {
    EXPECT_DOUBLE_EQ(bml.y[servers], fat_tree.y[servers] / 2);
    EXPECT_DOUBLE_EQ(series(panel, "Fat-Tree, hierarchical").y[servers], fat_tree.y[servers]);
  }
  EXPECT_DOUBLE_EQ(series(panel, "BCube, PS").y[0], 1.5);
  EXPECT_NEAR(series(panel, "BCube, PS").y[1] / bml.y[1], 1.94, 0.005);
}

// "theoretically BML should reduce the JCT by 0%~50%" (section 4.3).
TEST(Figure, ReducesTheTimeOfVgg19ByHalfAndByLessTheMoreIsComputed) {
  const Panel alone = make_figure("bml-7").panels.at(0);
  EXPECT_NEAR(series(alone, "BML").y[0], 1000 * 548e6 * 8 / 40e9 * 8 / 9, 1e-9);
  EXPECT_NEAR(reduction(series(alone, "BML").y[2], series(alone, "Fat-Tree, PS").y[2]), 50, 1e-9);
  const Panel computed = make_figure("bml-7", {.seconds_per_sample = 0.005}).panels.at(0);
  double before = 50;
  for (const unsigned size : {0U, 1U, 2U}) {
    const double here =
        reduction(series(computed, "BML").y[size], series(computed, "Fat-Tree, PS").y[size]);
    EXPECT_LT(here, before);
    EXPECT_GT(here, 0);
    before = here;
  }
}

TEST(Figure, ComparesBlueConnectWithARingOnBothSystems) {
  const Figure figure = make_figure("blueconnect-5");
  ASSERT_EQ(figure.panels.size(), 2u);
  const auto speedup = [](const Panel& panel) {
    return panel.series[1].y.back() / panel.series[0].y.back();
  };
  EXPECT_NEAR(speedup(figure.panels[0]), 1.56, 0.005);
  EXPECT_NEAR(speedup(figure.panels[1]), 1.19, 0.005);
  // "about 10x faster than the Intel platform"
  EXPECT_NEAR(figure.panels[0].series[1].y.back() / figure.panels[1].series[1].y.back(), 10, 1e-9);
}

TEST(Figure, OrdersTheThreeSchemesOfBlueConnectsFigure6) {
  const Figure figure = make_figure("blueconnect-6", {.latency_seconds = 1e-4});
  ASSERT_EQ(figure.panels.size(), 3u);
  const Panel& overhead = figure.panels[0];
  EXPECT_EQ(overhead.series[0].x, (std::vector<double>{4, 8, 16, 32, 64, 128, 192}));
  EXPECT_EQ(overhead.series[0].y[0], overhead.series[1].y[0]) << "inside a node both are NCCL";
  for (std::size_t i = 1; i < 7; ++i) {
    EXPECT_LT(overhead.series[0].y[i], overhead.series[1].y[i]);
  }
  EXPECT_GT(overhead.series[2].y[6], overhead.series[1].y[6]) << "a ring has 382 messages";
  // 196.3 images per second on one learner without any communication.
  const double iteration = 0.163 + overhead.series[0].y[6] / 1e3;
  EXPECT_NEAR(figure.panels[1].series[0].y[6], 100 * 0.163 / iteration, 1e-9);
  EXPECT_NEAR(figure.panels[2].series[0].y[6], 192 * 32 / iteration, 1e-6);
  EXPECT_EQ(series(overhead, "BlueConnect, the paper's text").y, std::vector<double>{31.0});
}

TEST(Figure, PutsAMeasuredRunBesideItsBar) {
  Figure figure = make_figure("hips-6");
  const MeasuredRun run{.topology = "bcube:4,2",
                        .algorithm = "ring",
                        .bits_per_second = 8e6,
                        .results = {{1'000'000, 2.5}, {1000, 0.1}}};
  ASSERT_TRUE(place(figure, run));
  const Series& point = figure.panels[0].series.back();
  EXPECT_EQ(point.origin, Origin::measured);
  EXPECT_EQ(point.beside, 2u);
  EXPECT_EQ(point.x, std::vector<double>{0});
  EXPECT_DOUBLE_EQ(point.y.at(0), 2.5) << "1 MB take a second";
  for (const MeasuredRun& other : {MeasuredRun{"bcube:3,2", "ring", 8e6, run.results},
                                   MeasuredRun{"bcube:4,2", "two-level", 8e6, run.results},
                                   MeasuredRun{"bcube:4,2", "ring", std::nullopt, run.results},
                                   MeasuredRun{"bcube:4,2", "ring", 8e6, {}},
                                   MeasuredRun{"bcube:4,2", "ring", 8e6, {{0, 1.0}}}}) {
    EXPECT_FALSE(place(figure, other));
  }
}

TEST(Figure, PutsARunOnATreeBesideTheBarOfAFatTree) {
  Figure figure = make_figure("bml-5");
  const std::size_t bars = figure.panels.at(0).series.size();
  MeasuredRun run{.topology = "tree:4x4",
                  .algorithm = "blueconnect",
                  .bits_per_second = 8e6,
                  .results = {{1'000'000, 2.0}}};
  EXPECT_FALSE(place(figure, run));  // its uplinks may bind
  run.like = "star:16";
  ASSERT_TRUE(place(figure, run));
  const Series& measured = figure.panels.at(0).series.at(bars);
  EXPECT_EQ(measured.name, "measured: blueconnect on tree:4x4");
  EXPECT_EQ(measured.x, std::vector<double>{0});
  EXPECT_EQ(measured.y, std::vector<double>{2});
}

TEST(Figure, DrawsAMeasuredRunAsALineOverItsSizes) {
  Figure figure = make_figure("blueconnect-5");
  ASSERT_TRUE(place(figure, {"bcube:2x4", "blueconnect", std::nullopt, {{4000, 0.5}, {0, 0.1}}}));
  for (const Panel& panel : figure.panels) {
    EXPECT_EQ(panel.series.back().name, "measured: blueconnect on bcube:2x4");
    EXPECT_EQ(panel.series.back().x, std::vector<double>{1000});
    EXPECT_EQ(panel.series.back().y, std::vector<double>{500});
  }
  Figure jobs = make_figure("bml-7");
  EXPECT_FALSE(place(jobs, {"bcube:3,2", "bml", 40e9, {{548'000'000, 0.1}}}));
}

}  // namespace
}  // namespace gradcube::control::model
