#include "control/training/training_figure.h"

#include <string>

#include "control/training/training_model.h"

namespace gradcube::control::training {
namespace {

using model::Origin;
using model::Panel;
using model::Series;

constexpr unsigned kNodes[] = {4, 8, 16, 32, 64};

struct Line {
  merge::Policy policy;
  const char* name;
};

constexpr Line kLines[] = {{merge::Policy::wfbp, "WFBP"},
                           {merge::Policy::synceasgd, "SyncEASGD"},
                           {merge::Policy::mgwfbp, "MG-WFBP"}};

// How many times as fast as one node N of them train (Eq. 4).
double speedup(const Network& network, unsigned nodes, merge::Policy policy) {
  const double alone = gpu_seconds(network.name);
  const auto iteration = iteration_of(network, alone, model::ring_cost(nodes, kPaperCosts));
  return nodes * alone / merge::iteration_seconds(iteration, merge::messages_of(policy, iteration));
}

Panel panel_of(std::string_view name) {
  const Network network = make_network(name);
  Panel panel{.title = std::string(network.title),
              .x_label = "nodes",
              .y_label = "speedup over one node",
              .categories = {}};
  panel.series.push_back({.name = "linear", .x = {4, 64}, .y = {4, 64}});
  for (const Line& line : kLines) {
    Series& series = panel.series.emplace_back(Series{.name = line.name, .x = {}, .y = {}});
    for (const unsigned nodes : kNodes) {
      series.x.push_back(nodes);
      series.y.push_back(speedup(network, nodes, line.policy));
    }
  }
  return panel;
}

// What the text of section V-C says of a policy at 64 nodes.
Series at_64(const std::string& name, double value) {
  return {.name = name + ", the paper's text", .x = {64}, .y = {value}, .origin = Origin::paper};
}

}  // namespace

model::Figure mgwfbp_figure_9() {
  Panel googlenet = panel_of("googlenet");
  const double googlenet_best = googlenet.series.back().y.back();
  googlenet.series.push_back(at_64("MG-WFBP / 1.78, WFBP", googlenet_best / 1.78));
  googlenet.series.push_back(at_64("MG-WFBP / 1.35, SyncEASGD", googlenet_best / 1.35));
  Panel resnet50 = panel_of("resnet50");
  const double resnet50_best = resnet50.series.back().y.back();
  resnet50.series.push_back(at_64("MG-WFBP / 1.75, WFBP", resnet50_best / 1.75));
  resnet50.series.push_back(at_64("MG-WFBP / 1.45, SyncEASGD", resnet50_best / 1.45));
  resnet50.series.push_back(at_64("55 % of 64, WFBP and SyncEASGD", 0.55 * 64));
  return {std::string(kFigure9),
          "MG-WFBP, Figure 9: training on K80s with 10 Gbit/s Ethernet",
          {std::move(googlenet), std::move(resnet50)}};
}

}  // namespace gradcube::control::training
