#include "control/model/figure.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "control/model/figure_makers.h"
#include "control/model/transfer_time.h"

namespace gradcube::control::model {
namespace {

struct Maker {
  std::string_view name;
  Figure (*make)(const FigureOptions&);
};

constexpr Maker kMakers[] = {{"hips-6", hips_figure_6},
                             {"hips-7", hips_figure_7},
                             {"bml-5", bml_figure_5},
                             {"bml-7", bml_figure_7},
                             {"blueconnect-5", blueconnect_figure_5},
                             {"blueconnect-6", blueconnect_figure_6},
                             {"scale", scale_figure}};

bool place_beside_bars(Panel& panel, const MeasuredRun& run) {
  if (!run.bits_per_second || run.results.empty()) return false;
  const auto [bytes, seconds] = *std::max_element(run.results.begin(), run.results.end());
  const double t_f = transfer_seconds(static_cast<double>(bytes), *run.bits_per_second);
  if (t_f <= 0) return false;
  std::vector<Series> points;
  for (unsigned number = 0; number < panel.series.size(); ++number) {
    const Series& bars = panel.series[number];
    if (std::find(bars.algorithms.begin(), bars.algorithms.end(), run.algorithm) ==
        bars.algorithms.end()) {
      continue;
    }
    for (unsigned category = 0; category < bars.topologies.size(); ++category) {
      const std::string& of_bar = bars.topologies[category];
      if (of_bar != run.topology && of_bar != run.like) continue;
      points.push_back({.name = fmt::format("measured: {} on {}", run.algorithm, run.topology),
                        .x = {static_cast<double>(category)},
                        .y = {seconds / t_f},
                        .origin = Origin::measured,
                        .beside = number});
    }
  }
  panel.series.insert(panel.series.end(), points.begin(), points.end());
  return !points.empty();
}

bool place_as_line(Panel& panel, const MeasuredRun& run) {
  Series line{.name = fmt::format("measured: {} on {}", run.algorithm, run.topology),
              .x = {},
              .y = {},
              .origin = Origin::measured};
  for (const auto& [bytes, seconds] : run.results) {
    if (bytes == 0) continue;
    const auto size = static_cast<double>(bytes);
    line.x.push_back(panel.measure == Measure::milliseconds_count ? size / 4 : size);
    line.y.push_back(seconds * 1e3);
  }
  if (line.x.empty()) return false;
  panel.series.push_back(std::move(line));
  return true;
}

}  // namespace

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::model:
      return "model";
    case Origin::paper:
      return "paper";
    case Origin::measured:
      return "measured";
  }
  return "?";
}

std::vector<std::string_view> figure_names() {
  std::vector<std::string_view> names;
  for (const Maker& maker : kMakers) names.push_back(maker.name);
  return names;
}

Figure make_figure(std::string_view name, const FigureOptions& options) {
  for (const Maker& maker : kMakers) {
    if (maker.name == name) return maker.make(options);
  }
  throw std::invalid_argument(fmt::format("there is no figure {}", name));
}

bool place(Figure& figure, const MeasuredRun& run) {
  bool placed = false;
  for (Panel& panel : figure.panels) {
    if (panel.measure == Measure::none) continue;
    placed = (panel.measure == Measure::relative ? place_beside_bars(panel, run)
                                                 : place_as_line(panel, run)) ||
             placed;
  }
  return placed;
}

}  // namespace gradcube::control::model
