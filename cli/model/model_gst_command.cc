#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/gst_reports.h"
#include "cli/model/model_commands.h"
#include "cli/text/closest.h"
#include "cli/text/option_checks.h"
#include "control/base/errors.h"
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
  std::string bytes = "100M";
  std::string latency;
  std::uint64_t group = 0;
  BlueConnectOptions blueconnect;
  bool crossover = false;
  bool switches = false;
  bool json = false;
};

std::vector<std::string> known_algorithms() {
  const auto names = control::model::gst_algorithms();
  return {names.begin(), names.end()};
}

std::vector<std::string> askable_algorithms() {
  std::vector<std::string> names = known_algorithms();
  names.emplace(names.begin(), kAllAlgorithms);
  return names;
}

// The algorithms that are asked for, each once and in the order of the table.
std::vector<std::string> algorithms_of(const GstOptions& options) {
  std::vector<std::string> known = known_algorithms();
  const std::set<std::string> asked(options.algorithms.begin(), options.algorithms.end());
  for (const std::string& name : asked) {
    require_known("--algorithm", "algorithm", name, askable_algorithms());
  }
  if (asked.count(std::string(kAllAlgorithms)) == 0) {
    std::erase_if(known, [&](const std::string& name) { return asked.count(name) == 0; });
  }
  return known;
}

ModelLoad load_of(const GstOptions& options) {
  const std::uint64_t bytes = control::parse_size(options.bytes, "--bytes");
  if (bytes == 0) {
    throw control::UsageError("--bytes \"0\": nothing takes no time; expected 1 byte or more");
  }
  const std::string latency = !options.latency.empty() ? options.latency
                              : options.crossover      ? "5us"
                                                       : "0";
  return {
      .bytes = static_cast<double>(bytes),
      .bits_per_second = static_cast<double>(control::parse_rate(options.rate, "--rate")),
      .latency_seconds = static_cast<double>(control::parse_duration(latency, "--latency")) / 1e9,
      .group = options.group};
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

std::vector<ModelRow> gst_rows(const GstOptions& options,
                               const std::vector<ModelTopology>& topologies,
                               const ModelLoad& load) {
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
  return rows;
}

Report report_of(const GstOptions& options) {
  ModelLoad load = load_of(options);
  if (!options.blueconnect.factors.empty()) {
    const std::vector<ModelRow> rows = blueconnect_rows(options.blueconnect, load);
    return times_report(rows, load);
  }
  std::vector<ModelTopology> topologies;
  for (const std::string& spec : options.topologies) {
    topologies.push_back(control::model::parse_model_topology(spec, "--topology"));
  }
  if (options.switches) return switches_report(topologies);
  if (options.crossover) return crossover_report(topologies, load);
  return times_report(gst_rows(options, topologies, load), load);
}

// Each of these views has options of its own.
void add_views(CLI::App& command, GstOptions& options) {
  const auto excludes = [&command](CLI::Option* view, const std::vector<std::string>& others) {
    for (const std::string& other : others) view->excludes(command.get_option(other));
  };
  excludes(command.add_flag("--crossover", options.crossover,
                            "From which size on which algorithms take the least time"),
           {"--algorithm", "--bytes", "--group"});
  excludes(command.add_flag("--switches", options.switches,
                            "The switches of a BCube, next to those of Fat-Trees for as many "
                            "servers"),
           {"--algorithm", "--bytes", "--group", "--rate", "--latency", "--crossover"});
  CLI::Option* factors =
      command
          .add_option("--factors", options.blueconnect.factors,
                      "Networks of different rates, by BlueConnect's Eq. 6 to 10: learners of each "
                      "level, from inside a node up: 3x2x2")
          ->allow_extra_args(false)
          ->delimiter('x');
  CLI::Option* rates = command
                           .add_option("--rates", options.blueconnect.rates,
                                       "Rate of each level of --factors: 256gbit,100gbit,200gbit")
                           ->allow_extra_args(false)
                           ->delimiter(',')
                           ->needs(factors);
  factors->needs(rates);
  excludes(factors,
           {"--topology", "--algorithm", "--group", "--rate", "--crossover", "--switches"});
  add_text(&command, "--network", options.blueconnect.network,
           "Of --factors: tree (Eq. 9) or torus (Eq. 10)")
      ->needs(factors);
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
                   fmt::format("{}; may be repeated", fmt::join(askable_algorithms(), ", ")))
      ->allow_extra_args(false)
      ->capture_default_str();
  add_text(command, "--rate", options->rate, "Rate of every link: 200mbit, 10gbit");
  command
      ->add_option("--group", options->group,
                   "Of two-level on star:N and fattree:N: servers under one switch; it divides N")
      ->check(whole_number_in(2, 1'000'000));
  add_text(command, "--bytes", options->bytes, "Gradient of each server: 12.5M, 64Ki");
  add_text(command, "--latency", options->latency,
           "Time of each message whatever its size: 5us [0; 5us with --crossover]");
  add_views(*command, *options);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "An algorithm has no row on a topology for which no paper gives its time; two-level has\n"
      "one on star:N and fattree:N with --group. ps is a parameter server on one of the servers,\n"
      "mesh one that is spread over all of them. docs/models.md lists what is assumed.\n"
      "With --crossover an algorithm that is not listed is nowhere the first. A server's\n"
      "messages pass one after the other here; `gradcube plan --why` counts those of a step at\n"
      "the same time, and finds other sizes.\n"
      "With --switches the Fat-Tree has three layers of switches with as many ports as the\n"
      "BCube's (BML, section 3.1); `relative` is by the one whose servers have one NIC.\n"
      "With --factors all learners below a port of a tree share its rate. In a torus, those of\n"
      "one node (the first factor) share the cables of each dimension. T_F is at the slowest\n"
      "rate.\n"
      "Examples:\n"
      "  gradcube model gst --topology bcube:4,2 --bytes 100M --rate 10gbit\n"
      "  gradcube model gst --topology bcube:32,2 --topology fattree:1024 --algorithm bml "
      "--algorithm ps\n"
      "  gradcube model gst --topology star:64 --bytes 64Ki --latency 5us --json\n"
      "  gradcube model gst --crossover --topology bcube:16,4\n"
      "  gradcube model gst --switches --topology bcube:4,2 --topology bcube:16,4\n"
      "  gradcube model gst --factors 3x2x2 --rates 256gbit,100gbit,200gbit");
  command->callback([options, &action] {
    action = [options] {
      report_of(*options).write(options->json);
      return 0;
    };
  });
}

}  // namespace gradcube::cli
