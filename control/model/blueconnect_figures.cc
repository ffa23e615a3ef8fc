// The figures of the BlueConnect paper.
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "control/model/blueconnect_model.h"
#include "control/model/figure_makers.h"

namespace gradcube::control::model {
namespace {

// Inside a node: PCIe gen3 with 16 lanes, and two NVLinks of a P100 to each neighbour. The paper
// names the links, not their rates.
constexpr double kPcie = 126e9;
constexpr double kNvlink = 320e9;

// Section 4.2: ResNet-50, 32 images on each of up to 192 learners.
constexpr double kGradient = 100e6;
constexpr double kIterationSeconds = 0.163;
constexpr double kImages = 32;
constexpr double kInfiniband = 100e9;
constexpr std::uint64_t kLearnersOfNode = 4;
constexpr std::uint64_t kNodesOfRack = 16;

// Two nodes of four learners.
Panel two_nodes(std::string title, double inside, double between, double latency) {
  Panel panel{.title = std::move(title),
              .x_label = "FP32 numbers",
              .y_label = "time (ms)",
              .categories = {},
              .logarithmic = true,
              .measure = Measure::milliseconds_count};
  Series blueconnect{.name = "BlueConnect, Eq. 9", .x = {}, .y = {}};
  Series ring{.name = "NCCL: a ring, Eq. 6", .x = {}, .y = {}};
  const std::array<BlueConnectStage, 2> stages = {BlueConnectStage{kLearnersOfNode, inside},
                                                  BlueConnectStage{2, between}};
  for (double numbers = 1e4; numbers <= 1.01e8; numbers *= 10) {
    for (Series* series : {&blueconnect, &ring}) series->x.push_back(numbers);
    blueconnect.y.push_back(1e3 * blueconnect_tree_seconds(stages, 4 * numbers, latency));
    ring.y.push_back(1e3 * one_level_seconds(2 * kLearnersOfNode, 4 * numbers, latency, between));
  }
  panel.series = {std::move(blueconnect), std::move(ring)};
  return panel;
}

struct Overheads {
  double blueconnect;
  double two_level;
  double ring;
};

// Of so many nodes, in racks of kNodesOfRack whose uplinks carry all of their nodes.
Overheads overheads(std::uint64_t nodes, double alpha) {
  const std::uint64_t in_rack = std::min(nodes, kNodesOfRack);
  std::vector<BlueConnectStage> stages = {{kLearnersOfNode, kNvlink}};
  if (in_rack > 1) stages.push_back({in_rack, kInfiniband});
  if (nodes > in_rack) {
    stages.push_back({nodes / in_rack, kInfiniband * static_cast<double>(in_rack)});
  }
  const double slowest = nodes > 1 ? kInfiniband : kNvlink;
  return {blueconnect_tree_seconds(stages, kGradient, alpha),
          // Inside one node it is the same as BlueConnect: both leave it to NCCL (section 4.2).
          nodes > 1 ? two_level_seconds(kLearnersOfNode, nodes, kGradient, alpha, kNvlink, slowest)
                    : blueconnect_tree_seconds(stages, kGradient, alpha),
          one_level_seconds(kLearnersOfNode * nodes, kGradient, alpha, slowest)};
}

Series paper_point(std::string name, double y) {
  return {.name = std::move(name), .x = {192}, .y = {y}, .origin = Origin::paper};
}

}  // namespace

Figure blueconnect_figure_5(const FigureOptions& options) {
  return {"blueconnect-5",
          "BlueConnect, Figure 5: all-reduce on two nodes of four learners",
          {two_nodes("(a) PCIe gen3 and 10 Gbit/s", kPcie, 10e9, options.latency_seconds),
           two_nodes("(b) NVLink and 100 Gbit/s", kNvlink, 100e9, options.latency_seconds)}};
}

Figure blueconnect_figure_6(const FigureOptions& options) {
  const auto panel = [](std::string title, std::string y_label) {
    return Panel{.title = std::move(title),
                 .x_label = "learners",
                 .y_label = std::move(y_label),
                 .categories = {}};
  };
  std::vector<Panel> panels = {panel("(a) communication", "overhead (ms)"),
                               panel("(b) scaling efficiency", "efficiency (%)"),
                               panel("(c) throughput", "images per second")};
  const std::array names = {"BlueConnect", "two-level (GLOO)", "ring"};
  for (Panel& each : panels) {
    for (const char* name : names) each.series.push_back({.name = name, .x = {}, .y = {}});
  }
  for (const std::uint64_t nodes : {1, 2, 4, 8, 16, 32, 48}) {
    const auto learners = static_cast<double>(kLearnersOfNode * nodes);
    const Overheads of = overheads(nodes, options.latency_seconds);
    const std::array seconds = {of.blueconnect, of.two_level, of.ring};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double iteration = kIterationSeconds + seconds[i];
      for (Panel& each : panels) each.series[i].x.push_back(learners);
      panels[0].series[i].y.push_back(1e3 * seconds[i]);
      panels[1].series[i].y.push_back(100 * kIterationSeconds / iteration);
      panels[2].series[i].y.push_back(learners * kImages / iteration);
    }
  }
  panels[0].series.push_back(paper_point("BlueConnect, the paper's text", 31.0));
  panels[0].series.push_back(paper_point("two-level (GLOO), the paper's text", 58.0));
  panels[1].series.push_back(paper_point("ring, the paper's text", 100 - 48));
  return {"blueconnect-6", "BlueConnect, Figure 6: ResNet-50 on up to 192 learners",
          std::move(panels)};
}

}  // namespace gradcube::control::model
