#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <vector>

#include "cli/model/figure_drawing.h"
#include "cli/model/figure_measured.h"
#include "cli/model/model_commands.h"
#include "cli/text/closest.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/model/figure.h"
#include "control/training/training_figure.h"

namespace gradcube::cli {
namespace {

using control::model::Figure;
using control::model::FigureOptions;
using control::model::MeasuredRun;
using control::model::Panel;
using control::model::Series;

struct ModelFigureOptions {
  std::string name;
  std::string out;
  std::vector<std::string> measured;
  std::string latency = "0";
  std::string computation = "0";
  bool json = false;
};

double seconds_of(const std::string& text, std::string_view option) {
  return static_cast<double>(control::parse_duration(text, option)) / 1e9;
}

std::vector<std::string> known_figures() {
  const auto names = control::model::figure_names();
  std::vector<std::string> known(names.begin(), names.end());
  known.emplace_back(control::training::kFigure9);
  return known;
}

// Of a name that is known.
Figure make_figure(const std::string& name, const FigureOptions& numbers) {
  if (name == control::training::kFigure9) return control::training::mgwfbp_figure_9();
  return control::model::make_figure(name, numbers);
}

// A number that changes nothing would be left out without a word. some: one of its kind.
void require_use(const std::string& name, const char* option, double value,
                 const FigureOptions& some) {
  if (value == 0 || figure_json(make_figure(name, some)) != figure_json(make_figure(name, {}))) {
    return;
  }
  throw control::UsageError(fmt::format(
      "{}: {} has nothing that it changes; `gradcube model figure --help` says which figures have",
      option, name));
}

Figure figure_of(const ModelFigureOptions& options) {
  require_known("figure", "figure", options.name, known_figures());
  const FigureOptions numbers{
      .latency_seconds = seconds_of(options.latency, "--latency"),
      .seconds_per_sample = seconds_of(options.computation, "--computation")};
  require_use(options.name, "--latency", numbers.latency_seconds, {.latency_seconds = 1});
  require_use(options.name, "--computation", numbers.seconds_per_sample, {.seconds_per_sample = 1});
  Figure figure = make_figure(options.name, numbers);
  for (const std::string& path : options.measured) {
    const MeasuredRun run = read_measured(path);
    if (place(figure, run)) continue;
    throw control::UsageError(fmt::format(
        "--measured {}: {} has no place for an all-reduce by {} on {}{}; docs/figures.md "
        "lists what has one",
        control::quoted(path), options.name, run.algorithm, run.topology,
        run.bits_per_second ? "" : ", whose links have no one rate"));
  }
  return figure;
}

// A row for each point, of each series in turn.
std::string panel_text(const Panel& panel) {
  TextTable table({{"series", Align::left}, {panel.x_label}, {panel.y_label}});
  for (const Series& series : panel.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      table.add_row({series.name,
                     panel.categories.empty()
                         ? fmt::format("{:.6g}", series.x[i])
                         : panel.categories[static_cast<std::size_t>(series.x[i])],
                     fmt::format("{:.4g}", series.y[i])});
    }
  }
  return (panel.title.empty() ? "" : "# " + panel.title + "\n") + table.text();
}

int run_figure(const ModelFigureOptions& options) {
  if (!options.out.empty()) check_figure_path(options.out);
  const Figure figure = figure_of(options);
  if (!options.out.empty()) draw_figure(figure, options.out);
  if (options.json) {
    write_output(figure_json(figure).dump() + "\n");
  } else if (options.out.empty()) {
    write_output(fmt::format("# {}\n", figure.title));
    for (const Panel& panel : figure.panels) write_output(panel_text(panel));
  }
  return 0;
}

}  // namespace

void add_model_figure(CLI::App& model, Action& action) {
  CLI::App* command =
      model.add_subcommand("figure", "A figure of a paper, as its equations give it; draws it");
  auto options = std::make_shared<ModelFigureOptions>();
  command->add_option("name", options->name, fmt::format("{}", fmt::join(known_figures(), ", ")))
      ->required();
  add_text(command, "--out", options->out,
           "Draw it into this file, .svg or .png; needs python3-matplotlib");
  add_text(command, "--measured", options->measured,
           "Show beside it what `gradcube perf allreduce --json` has written into this "
           "file; may be repeated");
  add_text(command, "--latency", options->latency,
           "Time of each message, in blueconnect-5 and blueconnect-6; in scale, 0 stands "
           "for 5us");
  add_text(command, "--computation", options->computation,
           "Time that a server computes for each sample, in bml-7: 5ms");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Without --out the numbers are printed. docs/figures.md says what the papers give of each\n"
      "figure, and what is assumed.\n"
      "Examples:\n"
      "  gradcube model figure hips-6 --out hips-6.svg\n"
      "  gradcube perf allreduce --sizes 12.5M --json > run.json\n"
      "  gradcube model figure hips-6 --measured run.json --out hips-6.png");
  command->callback([options, &action] { action = [options] { return run_figure(*options); }; });
}

}  // namespace gradcube::cli
