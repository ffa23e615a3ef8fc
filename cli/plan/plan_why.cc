#include "cli/plan/plan_why.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/fitted_costs.h"
#include "cli/cluster/measurements.h"
#include "cli/cluster/running_cluster.h"
#include "cli/plan/asked_topology.h"
#include "cli/text/report.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/plan/auto_plans.h"
#include "control/plan/base/topology.h"
#include "control/plan/plan_cost.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::PlanTime;
using control::RunDirectory;

constexpr control::CollectiveKind kKind = control::CollectiveKind::all_reduce;
// The flat algorithms walk over all pairs of servers.
constexpr control::ServerId kMostServers = 4096;
constexpr const char* kTopology = "bcube:3,2";  // where nothing runs and none is given

struct Situation {
  control::Topology topology;
  std::string algorithm;  // auto, with or without costs
  bool is_running = false;
  bool is_assumed = false;  // nothing runs, and none was asked for
  Measurements measured;
};

struct Row {
  std::string algorithm;
  PlanTime time;
  std::optional<double> measured;
};

Situation situation_of(const PlanWhyOptions& options) {
  const RunDirectory directory = RunDirectory::from_environment();
  Situation situation{
      .topology = control::parse_topology(kTopology, "--topology"),
      .algorithm = options.algorithm.empty() ? std::string(control::kAuto) : options.algorithm,
      .measured = {}};
  if (!options.topology.empty() || !directory.living_daemon()) {
    situation.is_assumed = options.topology.empty();
    situation.topology = asked_topology(situation.is_assumed ? kTopology : options.topology,
                                        options.absent, options.rate, options.oversubscription);
    return situation;
  }
  for (const auto& [flag, text] :
       {std::pair("--rate", options.rate), std::pair("--absent", options.absent),
        std::pair("--oversubscription", options.oversubscription)}) {
    if (text.empty()) continue;
    throw control::UsageError(
        fmt::format("{}: the running cluster has its own; expected a --topology beside it", flag));
  }
  const RunningCluster cluster = running_cluster(directory);
  situation.topology = cluster.topology;
  situation.is_running = true;
  situation.measured = Measurements::read(directory, cluster.key);
  situation.algorithm = with_fitted_costs(situation.algorithm, directory, cluster.key,
                                          cluster.topology, cluster.servers_per_core);
  return situation;
}

std::vector<Row> rows_of(const Situation& situation, const control::Placement& all,
                         const control::MessageCosts& costs, std::uint64_t bytes) {
  const auto parameters = control::cost_parameters(situation.topology, costs);
  std::vector<Row> rows;
  for (const auto& plan : control::candidate_plans(situation.topology, all, "--topology")) {
    if (!control::can_run(*plan, kKind, bytes)) continue;
    rows.push_back({plan->algorithm(),
                    control::PlanCost(*plan).time(kKind, static_cast<double>(bytes), parameters),
                    situation.measured.seconds(plan->algorithm(), bytes)});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time.seconds() < b.time.seconds(); });
  return rows;
}

Report report_of(const Situation& situation, const control::MessageCosts& costs,
                 std::uint64_t bytes, const std::vector<Row>& rows, const std::string& chosen) {
  const char* const which = situation.is_running   ? ", the running cluster"
                            : situation.is_assumed ? ", as no cluster is running"
                                                   : "";
  Report report;
  report.line(fmt::format("# all-reduce of {} on {}{}: {} runs {}",
                          human_bytes(static_cast<double>(bytes)), situation.topology.spec(), which,
                          control::auto_name(costs), chosen));
  report.fact("topology", control::topology_json(situation.topology));
  report.fact("running", situation.is_running);
  report.fact("bytes", bytes);
  report.fact("costs", control::auto_name(costs));
  report.fact("auto", chosen);
  ReportTable& table = report.table("candidates", {{"algorithm", "algorithm", Align::left},
                                                   {"modelled", "seconds"},
                                                   {"relative", ""},
                                                   {"latency", "latency_seconds"},
                                                   {"transfer", "transfer_seconds"},
                                                   {"binds", "binds", Align::left},
                                                   {"measured", "measured_seconds"},
                                                   {"", "", Align::left}});
  const double least = rows.front().time.seconds();
  for (const Row& row : rows) {
    const PlanTime& time = row.time;
    table.add({row.algorithm, cell::seconds(time.seconds()),
               cell::shown(least > 0 ? fmt::format("{:.3f}", time.seconds() / least) : "-"),
               cell::seconds(time.latency), cell::seconds(time.transfer),
               time.latency_binds() ? "latency"
                                    : Cell(fmt::format("level {}", time.busiest), time.busiest),
               cell::known(row.measured, cell::seconds),
               cell::shown(row.algorithm == chosen ? "auto" : "")});
  }
  return report;
}

}  // namespace

int run_plan_why(const PlanWhyOptions& options) {
  const std::uint64_t bytes = control::parse_size(options.size, "--why");
  const Situation situation = situation_of(options);
  if (situation.topology.servers() > kMostServers) {
    throw control::UsageError(fmt::format("--why: {} has {} servers; expected at most {}",
                                          situation.topology.spec(), situation.topology.servers(),
                                          kMostServers));
  }
  const auto costs = control::auto_costs(situation.algorithm, situation.topology, "--algorithm");
  if (!costs) {
    throw control::UsageError(
        "--why: it compares all algorithms; expected no --algorithm, or auto with the costs of a "
        "message: --algorithm auto:1us,40us");
  }
  const auto all = control::Placement::all(situation.topology);
  const auto choice =
      control::make_choice(situation.algorithm, situation.topology, all, "--topology");
  const std::string chosen = choice.plan_of(kKind, bytes).algorithm();
  const std::vector<Row> rows = rows_of(situation, all, *costs, bytes);
  report_of(situation, *costs, bytes, rows, chosen).write(options.json);
  return 0;
}

}  // namespace gradcube::cli
