#include "cli/model/gst_reports.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text/closest.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/model/blueconnect_model.h"
#include "control/model/bml_model.h"
#include "control/model/crossover.h"
#include "control/model/grid.h"
#include "control/model/transfer_time.h"

namespace gradcube::cli {
namespace {

using control::UsageError;
using control::model::BlueConnectStage;
using control::model::ModelLoad;
using control::model::ModelRow;
using control::model::ModelTopology;

constexpr std::uint64_t kMostGroupFactor = 65536;

std::vector<BlueConnectStage> stages_of(const BlueConnectOptions& options) {
  if (options.factors.size() != options.rates.size()) {
    throw UsageError(fmt::format(
        "--rates has {} and --factors {}; expected a rate for each factor, for example --factors "
        "3x2x2 --rates 256gbit,100gbit,200gbit",
        options.rates.size(), options.factors.size()));
  }
  std::vector<BlueConnectStage> stages;
  std::uint64_t learners = 1;
  for (std::size_t i = 0; i < options.factors.size(); ++i) {
    const bool may_be_one = i == 0 && options.network == "torus" && options.factors.size() > 1;
    const std::uint64_t p = control::parse_integer(options.factors[i], "--factors",
                                                   may_be_one ? 1 : 2, kMostGroupFactor);
    learners *= p;
    if (learners > control::model::kMostServers) {
      throw UsageError(fmt::format("--factors {}: expected at most {} learners",
                                   fmt::join(options.factors, "x"), control::model::kMostServers));
    }
    stages.push_back({p, static_cast<double>(control::parse_rate(options.rates[i], "--rates"))});
  }
  return stages;
}

}  // namespace

Report times_report(const std::vector<ModelRow>& rows, const ModelLoad& load) {
  const std::string latency =
      load.latency_seconds > 0
          ? fmt::format(", {} for each message", human_seconds(load.latency_seconds))
          : "";
  Report report;
  report.line(fmt::format(
      "# {} at {}{}: T_F, one transfer over one link, is {}", human_bytes(load.bytes),
      human_rate(load.bits_per_second), latency,
      human_seconds(control::model::transfer_seconds(load.bytes, load.bits_per_second))));
  ReportTable& table = report.table("rows", {{"topology", "topology", Align::left},
                                             {"algorithm", "algorithm", Align::left},
                                             {"servers", "servers"},
                                             {"time", "seconds"},
                                             {"time/T_F", "relative"},
                                             {"source", "source", Align::left}});
  for (const ModelRow& row : rows) {
    table.add({row.topology, row.algorithm, cell::count(row.servers), cell::seconds(row.seconds),
               cell::plain(row.relative, "{:.4g}"), row.source});
  }
  return report;
}

Report crossover_report(const std::vector<ModelTopology>& topologies, const ModelLoad& load) {
  Report report;
  report.line(fmt::format("# {}, {} for each message", human_rate(load.bits_per_second),
                          human_seconds(load.latency_seconds)));
  ReportTable& table = report.table("rows", {{"topology", "topology", Align::left},
                                             {"from", "from_bytes"},
                                             {"least time by", "algorithms", Align::left},
                                             {"latency", "latency_seconds"},
                                             {"time/T_F", "relative"}});
  for (const ModelTopology& topology : topologies) {
    for (const auto& winners : control::model::crossovers(gst_lines(topology, load))) {
      std::vector<std::string> algorithms;
      for (const auto& line : winners.lines) algorithms.push_back(line.algorithm);
      const auto& line = winners.lines.front();
      table.add({topology.spec(), cell::bytes(winners.from_bytes),
                 Cell(fmt::format("{}", fmt::join(algorithms, ", ")), algorithms),
                 cell::seconds(line.latency_seconds),
                 cell::plain(line.seconds_per_byte * load.bits_per_second / 8, "{:.4g}")});
    }
  }
  return report;
}

Report switches_report(const std::vector<ModelTopology>& topologies) {
  Report report;
  ReportTable& table = report.table("rows", {{"topology", "topology", Align::left},
                                             {"servers", "servers"},
                                             {"NICs/server", "nics_per_server"},
                                             {"ports/switch", "ports_per_switch"},
                                             {"switches", "switches"},
                                             {"relative", "relative"}});
  for (const ModelTopology& bcube : topologies) {
    if (bcube.kind != ModelTopology::Kind::bcube || !bcube.uniform()) {
      throw UsageError(fmt::format(
          "--topology {}: the paper counts the switches of BCube, next to a Fat-Tree of the same "
          "switches for as many servers; expected bcube:n,k, for example bcube:3,2",
          control::quoted(bcube.spec())));
    }
    const std::uint64_t servers = bcube.servers();
    const std::uint64_t n = bcube.radices.front();
    const double least = control::model::fat_tree_switches(servers, n);
    const auto add = [&](const std::string& topology, unsigned nics, double switches) {
      table.add({topology, cell::count(servers), cell::plain(nics), cell::count(n),
                 cell::count(static_cast<std::uint64_t>(switches)),
                 cell::plain(switches / least, "{:.4g}")});
    };
    const std::string fat_tree = fmt::format("fattree:{}", servers);
    add(bcube.spec(), bcube.levels(),
        static_cast<double>(control::model::bcube_switches(n, bcube.levels())));
    add(fat_tree, 1, least);
    if (bcube.levels() == 1) continue;
    add(fat_tree, bcube.levels(), control::model::fat_tree_switches(servers, n, bcube.levels()));
  }
  return report;
}

std::vector<ModelRow> blueconnect_rows(const BlueConnectOptions& options, ModelLoad& load) {
  require_known("--network", "network", options.network, {"tree", "torus"});
  const std::vector<BlueConnectStage> stages = stages_of(options);
  std::uint64_t learners = 1;
  for (const BlueConnectStage& stage : stages) learners *= stage.p;
  load.bits_per_second =
      std::min_element(stages.begin(), stages.end(), [](const auto& left, const auto& right) {
        return left.w < right.w;
      })->w;
  const double alpha = load.latency_seconds;
  const double least_w = load.bits_per_second;
  std::vector<ModelRow> rows;
  const auto add = [&](std::string algorithm, double seconds, std::string source) {
    rows.push_back(
        {.topology = fmt::format("{}:{}", options.network, fmt::join(options.factors, "x")),
         .algorithm = std::move(algorithm),
         .servers = learners,
         .seconds = seconds,
         .relative = seconds / control::model::transfer_seconds(load.bytes, least_w),
         .source = std::move(source)});
  };
  add("ring", control::model::one_level_seconds(learners, load.bytes, alpha, least_w),
      "BlueConnect Eq. 6");
  add("two-level",
      control::model::two_level_seconds(stages[0].p, learners / stages[0].p, load.bytes, alpha,
                                        stages[0].w, least_w),
      "BlueConnect Eq. 7");
  if (options.network == "tree") {
    add("blueconnect", control::model::blueconnect_tree_seconds(stages, load.bytes, alpha),
        "BlueConnect Eq. 9");
  } else {
    add("blueconnect", control::model::blueconnect_torus_seconds(stages, load.bytes, alpha),
        "BlueConnect Eq. 10");
  }
  return rows;
}

}  // namespace gradcube::cli
