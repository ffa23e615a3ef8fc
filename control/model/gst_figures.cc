// Figures of synchronization times: those of HiPS and BML, and that of docs/scale.md.
#include <array>
#include <fmt/format.h>

#include "control/model/bml_model.h"
#include "control/model/crossover.h"
#include "control/model/figure_makers.h"
#include "control/model/hips_model.h"
#include "control/model/transfer_time.h"

namespace gradcube::control::model {
namespace {

constexpr const char* kRelative = "GST / T_F";

struct Parameters {
  std::uint64_t n;
  unsigned h;
};

// The configurations of HiPS, section 4.2.
constexpr std::array kHips = {Parameters{4, 2}, Parameters{8, 3}, Parameters{16, 4}};

using HipsFunction = double (*)(HipsNetwork, std::uint64_t n, unsigned h, double w_by_b);

Series hips_bars(std::string name, HipsNetwork network, HipsFunction gst,
                 std::vector<std::string> algorithms) {
  Series bars{.name = std::move(name), .x = {}, .y = {}, .algorithms = std::move(algorithms)};
  for (const auto& [n, h] : kHips) {
    bars.x.push_back(static_cast<double>(bars.x.size()));
    bars.y.push_back(gst(network, n, h, 1));
    bars.topologies.push_back(
        fmt::format("{}:{},{}", network == HipsNetwork::torus ? "torus" : "bcube", n, h));
  }
  return bars;
}

Figure hips_figure(std::string name, std::string_view network_name, HipsNetwork network) {
  Panel panel{.title = "",
              .x_label = "(n, h)",
              .y_label = kRelative,
              .categories = {},
              .measure = Measure::relative};
  for (const auto& [n, h] : kHips) panel.categories.push_back(fmt::format("({},{})", n, h));
  const bool torus = network == HipsNetwork::torus;
  panel.series = {
      hips_bars("HiPS", network, hips_gst,
                torus ? std::vector<std::string>{"hips:ring"}
                      : std::vector<std::string>{"hips:mesh", "hips:ring", "bml"}),
      hips_bars(torus ? "PSS/MS, a lower bound" : "PSS/MS", network, hips_mesh_gst, {"mesh"}),
      hips_bars("RS", network, hips_ring_gst, {"ring"})};
  return {std::move(name),
          fmt::format("HiPS, Figure {}: GST in {}", torus ? 7 : 6, network_name),
          {std::move(panel)}};
}

// Of the two networks of BML's Figure 5.
Series bml_bars(std::string name, std::array<double, 2> gst, std::vector<std::string> topologies,
                std::vector<std::string> algorithms) {
  return {.name = std::move(name),
          .x = {0, 1},
          .y = {gst[0], gst[1]},
          .topologies = std::move(topologies),
          .algorithms = std::move(algorithms)};
}

}  // namespace

Figure hips_figure_6(const FigureOptions& /*options*/) {
  return hips_figure("hips-6", "BCube", HipsNetwork::bcube);
}

Figure hips_figure_7(const FigureOptions& /*options*/) {
  return hips_figure("hips-7", "Torus", HipsNetwork::torus);
}

Figure bml_figure_5(const FigureOptions& /*options*/) {
  const std::vector<std::string> bcubes = {"bcube:4,2", "bcube:32,2"};
  // A star is non-blocking, too: the paper's testbed of a Fat-Tree is one (section 4.2). A measured
  // tree is like it if its uplinks are as fast as all links below them (MeasuredRun::like).
  const std::vector<std::string> stars = {"star:16", "star:1024"};
  const std::array fat_trees = {fat_tree_gst(16, 1), fat_tree_gst(1024, 1)};
  Panel panel{.title = "",
              .x_label = "servers",
              .y_label = kRelative,
              .categories = {"16", "1024"},
              .measure = Measure::relative};
  panel.series = {bml_bars("BCube, BML", {bml_gst(4, 2, 1), bml_gst(32, 2, 1)}, bcubes,
                           {"bml", "hips:mesh", "hips:ring"}),
                  bml_bars("BCube, PS",
                           {hips_mesh_gst(HipsNetwork::bcube, 4, 2, 1),
                            hips_mesh_gst(HipsNetwork::bcube, 32, 2, 1)},
                           bcubes, {"mesh"}),
                  bml_bars("Fat-Tree, hierarchical", fat_trees, stars, {"blueconnect"}),
                  bml_bars("Fat-Tree, PS", fat_trees, stars, {"mesh", "bml", "hips:mesh"})};
  return {"bml-5", "BML, Figure 5: GST on BCube and on Fat-Tree", {std::move(panel)}};
}

Figure bml_figure_7(const FigureOptions& options) {
  // Section 4.2: 548 MB, 40GE, BCube(3,2) or nine servers on one switch, 1000 iterations.
  const double t_f = transfer_seconds(548e6, 40e9);
  constexpr double kIterations = 1000;
  Panel panel{.title = "",
              .x_label = "sub-minibatch size",
              .y_label = "time of 1000 iterations (s)",
              .categories = {"16", "32", "64"}};
  Series bml{.name = "BML", .x = {}, .y = {}};
  Series fat_tree{.name = "Fat-Tree, PS", .x = {}, .y = {}};
  for (const double samples : {16, 32, 64}) {
    const double computation = samples * options.seconds_per_sample;
    for (Series* series : {&bml, &fat_tree}) {
      series->x.push_back(static_cast<double>(series->x.size()));
    }
    bml.y.push_back(kIterations * (computation + bml_gst(3, 2, t_f)));
    fat_tree.y.push_back(kIterations * (computation + fat_tree_gst(9, t_f)));
  }
  panel.series = {std::move(bml), std::move(fat_tree)};
  return {"bml-7",
          fmt::format("BML, Figure 7: VGG-19{}",
                      options.seconds_per_sample > 0 ? "" : ", the synchronization alone"),
          {std::move(panel)}};
}

Figure scale_figure(const FigureOptions& options) {
  constexpr double kLatency = 5e-6;
  const ModelLoad load{
      .bits_per_second = 10e9,
      .latency_seconds = options.latency_seconds > 0 ? options.latency_seconds : kLatency};
  Panel panel{.title = "",
              .x_label = "bytes",
              .y_label = "time (ms)",
              .categories = {},
              .logarithmic = true,
              .measure = Measure::milliseconds_bytes};
  const ModelTopology topology = parse_model_topology("bcube:16,4", "the figure");
  for (const GstLine& line : gst_lines(topology, load)) {
    Series& series = panel.series.emplace_back(Series{.name = line.algorithm, .x = {}, .y = {}});
    for (double bytes = 1e3; bytes <= 1.01e10; bytes *= 10) {
      series.x.push_back(bytes);
      series.y.push_back(line.seconds(bytes) * 1e3);
    }
  }
  return {"scale",
          fmt::format("GST on BCube(16,4), 65536 servers: 10 Gbit/s, {:.3g} us for each message",
                      load.latency_seconds * 1e6),
          {std::move(panel)}};
}

}  // namespace gradcube::control::model
