#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/model_options.h"
#include "cli/model/model_report.h"
#include "cli/text/closest.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/model/gst_table.h"

namespace gradcube::cli {
namespace {

using control::model::ModelLoad;
using control::model::ModelRow;
using control::model::ModelTopology;

constexpr std::string_view kAllAlgorithms = "all";

struct GstOptions {
  std::vector<std::string> topologies = {"bcube:3,2"};
  std::vector<std::string> algorithms = {std::string(kAllAlgorithms)};
  std::string rate = "10gbit";
  ModelLoadOptions load;
  std::uint64_t group = 0;
  bool json = false;
};

std::vector<std::string> known_algorithms() {
  const auto names = control::model::gst_algorithms();
  return {names.begin(), names.end()};
}

// The algorithms that are asked for, each once and in the order of the table.
std::vector<std::string> algorithms_of(const GstOptions& options) {
  std::vector<std::string> known = known_algorithms();
  const std::set<std::string> asked(options.algorithms.begin(), options.algorithms.end());
  for (const std::string& name : asked) {
    if (name == kAllAlgorithms || std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    const auto meant = closest(name, known);
    throw control::UsageError(
        fmt::format("--algorithm {}: there is no such algorithm{}; expected {}, {}",
                    control::quoted(name), meant ? fmt::format(" (did you mean {}?)", *meant) : "",
                    kAllAlgorithms, fmt::join(known, ", ")));
  }
  if (asked.count(std::string(kAllAlgorithms)) == 0) {
    std::erase_if(known, [&](const std::string& name) { return asked.count(name) == 0; });
  }
  return known;
}

// The rows of the algorithms on one topology; those that no paper gives are left out.
std::vector<ModelRow> rows_of(const ModelTopology& topology,
                              const std::vector<std::string>& algorithms, const ModelLoad& load) {
  std::vector<ModelRow> rows;
  for (const std::string& algorithm : algorithms) {
    if (auto row = control::model::gst_row(topology, algorithm, load)) {
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

// An algorithm that was named must have a row on one of the topologies at least.
void require_rows(const std::string& algorithm, const std::vector<ModelTopology>& topologies,
                  const ModelLoad& load) {
  std::vector<std::string> specs;
  for (const ModelTopology& topology : topologies) {
    if (control::model::gst_row(topology, algorithm, load)) return;
    specs.push_back(topology.spec());
  }
  std::vector<std::string> names;
  for (const ModelRow& row : rows_of(topologies.front(), known_algorithms(), load)) {
    names.push_back(row.algorithm);
  }
  const bool lacks_group = algorithm == "two-level" && topologies.front().levels() == 1;
  throw control::UsageError(
      fmt::format("--algorithm {}: {} on {}; expected, on {}, {}", algorithm,
                  lacks_group ? "its time depends on how many servers are in a group: name with "
                                "--group a number that divides those"
                              : "no paper gives its time",
                  fmt::join(specs, ", "), specs.front(), fmt::join(names, ", ")));
}

int run_gst(const GstOptions& options) {
  ModelLoad load = load_of(options.load);
  load.bits_per_second = static_cast<double>(control::parse_rate(options.rate, "--rate"));
  load.group = options.group;
  std::vector<ModelTopology> topologies;
  for (const std::string& spec : options.topologies) {
    topologies.push_back(control::model::parse_model_topology(spec, "--topology"));
  }
  const std::vector<std::string> algorithms = algorithms_of(options);
  const bool all = algorithms.size() == known_algorithms().size();
  for (const std::string& algorithm : algorithms) {
    if (!all) require_rows(algorithm, topologies, load);
  }
  std::vector<ModelRow> rows;
  for (const ModelTopology& topology : topologies) {
    const std::vector<ModelRow> more = rows_of(topology, algorithms, load);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  write_output(options.json ? model_json(rows).dump() + "\n" : model_text(rows, load));
  return 0;
}

}  // namespace

void add_model_gst(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "gst", "The gradient synchronization time of the papers' algorithms on some topologies");
  auto options = std::make_shared<GstOptions>();
  command
      ->add_option("--topology", options->topologies,
                   "bcube:n,k, bcube:4x3x2, torus:n,h, star:N or fattree:N; may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--algorithm", options->algorithms,
                   fmt::format("all, {}; may be repeated", fmt::join(known_algorithms(), ", ")))
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--rate", options->rate, "Rate of every link: 200mbit, 10gbit")
      ->capture_default_str();
  command
      ->add_option("--group", options->group,
                   "Of two-level on star:N and fattree:N: servers under one switch; it divides N")
      ->check(whole_number_in(2, 1'000'000));
  add_load_options(command, options->load);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "An algorithm has no row on a topology for which no paper gives its time; two-level has one "
      "on\n"
      "star:N and fattree:N with --group. ps is a parameter\n"
      "server on one of the servers, mesh one that is spread over all of them. docs/models.md "
      "lists\n"
      "what is assumed.\n"
      "Examples:\n"
      "  gradcube model gst --topology bcube:4,2 --bytes 100M --rate 10gbit\n"
      "  gradcube model gst --topology bcube:32,2 --topology fattree:1024 --algorithm bml "
      "--algorithm ps\n"
      "  gradcube model gst --topology star:64 --bytes 64Ki --latency 5us --json");
  command->callback([options, &action] { action = [options] { return run_gst(*options); }; });
}

}  // namespace gradcube::cli
