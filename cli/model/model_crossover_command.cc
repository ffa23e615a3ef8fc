#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/model/model_options.h"
#include "cli/text/output.h"
#include "cli/text/text_table.h"
#include "control/base/units.h"
#include "control/model/crossover.h"

namespace gradcube::cli {
namespace {

using control::model::GstLine;
using control::model::ModelLoad;
using control::model::ModelTopology;
using control::model::Winners;
using nlohmann::ordered_json;

struct CrossoverOptions {
  std::vector<std::string> topologies = {"bcube:3,2"};
  std::string rate = "10gbit";
  std::string latency = "5us";
  bool json = false;
};

struct CrossoverRow {
  std::string topology;
  std::vector<std::string> algorithms;
  double from_bytes;
  double latency_seconds;
  double relative;  // of T_F, for long buffers
};

std::vector<CrossoverRow> rows_of(const ModelTopology& topology, const ModelLoad& load) {
  std::vector<CrossoverRow> rows;
  for (const Winners& winners : control::model::crossovers(gst_lines(topology, load))) {
    const GstLine& line = winners.lines.front();
    CrossoverRow& row =
        rows.emplace_back(CrossoverRow{topology.spec(),
                                       {},
                                       winners.from_bytes,
                                       line.latency_seconds,
                                       line.seconds_per_byte * load.bits_per_second / 8});
    for (const GstLine& winner : winners.lines) row.algorithms.push_back(winner.algorithm);
  }
  return rows;
}

ordered_json rows_json(const std::vector<CrossoverRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const CrossoverRow& row : rows) {
    list.push_back({{"topology", row.topology},
                    {"from_bytes", row.from_bytes},
                    {"algorithms", row.algorithms},
                    {"latency_seconds", row.latency_seconds},
                    {"relative", row.relative}});
  }
  return {{"rows", std::move(list)}};
}

std::string rows_text(const std::vector<CrossoverRow>& rows, const ModelLoad& load) {
  TextTable table({{"topology", Align::left},
                   {"from"},
                   {"least time by", Align::left},
                   {"latency"},
                   {"time/T_F"}});
  for (const CrossoverRow& row : rows) {
    table.add_row({row.topology, human_bytes(row.from_bytes),
                   fmt::format("{}", fmt::join(row.algorithms, ", ")),
                   human_seconds(row.latency_seconds), fmt::format("{:.4g}", row.relative)});
  }
  return fmt::format("# {}, {} for each message\n{}", human_rate(load.bits_per_second),
                     human_seconds(load.latency_seconds), table.text());
}

int run_crossover(const CrossoverOptions& options) {
  const ModelLoad load{
      .bits_per_second = static_cast<double>(control::parse_rate(options.rate, "--rate")),
      .latency_seconds =
          static_cast<double>(control::parse_duration(options.latency, "--latency")) / 1e9};
  std::vector<CrossoverRow> rows;
  for (const std::string& spec : options.topologies) {
    const std::vector<CrossoverRow> more =
        rows_of(control::model::parse_model_topology(spec, "--topology"), load);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  write_output(options.json ? rows_json(rows).dump() + "\n" : rows_text(rows, load));
  return 0;
}

}  // namespace

void add_model_crossover(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "crossover", "From which size on which of the papers' algorithms takes the least time");
  auto options = std::make_shared<CrossoverOptions>();
  command
      ->add_option("--topology", options->topologies,
                   "bcube:n,k, bcube:4x3x2, torus:n,h, star:N or fattree:N; may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--rate", options->rate, "Rate of every link: 200mbit, 10gbit")
      ->capture_default_str();
  command->add_option("--latency", options->latency, "Time of each message, whatever its size: 5us")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Every time is that of `gradcube model gst`: `latency` for a buffer of no size, and for "
      "each\n"
      "further byte `time/T_F` of the time that one link takes for it. An algorithm that is not\n"
      "listed is nowhere the first. A server's messages pass one after the other there; `gradcube\n"
      "plan --why` counts those of a step at the same time, and finds other sizes.\n"
      "Example:\n"
      "  gradcube model crossover --topology bcube:16,4 --rate 10gbit --latency 5us");
  command->callback([options, &action] { action = [options] { return run_crossover(*options); }; });
}

}  // namespace gradcube::cli
