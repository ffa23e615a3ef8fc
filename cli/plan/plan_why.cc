#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <vector>

#include "cli/cluster/running_cluster.h"
#include "cli/plan/plan_forms.h"
#include "cli/plan/planned_cluster.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
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

struct Row {
  std::string algorithm;
  PlanTime time;
};

std::vector<Row> rows_of(const PlannedCluster& cluster, const control::MessageCosts& costs,
                         std::uint64_t bytes) {
  const auto parameters = control::cost_parameters(cluster.topology, costs);
  std::vector<Row> rows;
  for (const auto& plan :
       control::candidate_plans(cluster.topology, cluster.placement, "--topology")) {
    if (!control::can_run(*plan, kKind, bytes)) continue;
    rows.push_back({plan->algorithm(),
                    control::PlanCost(*plan).time(kKind, static_cast<double>(bytes), parameters)});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time.seconds() < b.time.seconds(); });
  return rows;
}

Report report_of(const PlannedCluster& cluster, const control::MessageCosts& costs,
                 std::uint64_t bytes, const std::vector<Row>& rows, const std::string& chosen) {
  Report report;
  report.line(fmt::format("# all-reduce of {} on {}{}: {} runs {}", exact_bytes(bytes),
                          cluster.topology.spec(), cluster.which, control::auto_name(costs),
                          chosen));
  report.fact("topology", control::topology_json(cluster.topology));
  report.fact("running", cluster.running.has_value());
  report.fact("bytes", bytes);
  report.fact("costs", control::auto_name(costs));
  report.fact("auto", chosen);
  ReportTable& table = report.table("candidates", {{"algorithm", "algorithm", Align::left},
                                                   {"modelled", "seconds"},
                                                   {"relative", ""},
                                                   {"latency", "latency_seconds"},
                                                   {"transfer", "transfer_seconds"},
                                                   {"binds", "binds", Align::left},
                                                   {"", "", Align::left}});
  const double least = rows.front().time.seconds();
  for (const Row& row : rows) {
    const PlanTime& time = row.time;
    table.add({row.algorithm, cell::seconds(time.seconds()),
               cell::shown(least > 0 ? fmt::format("{:.3f}", time.seconds() / least) : "-"),
               cell::seconds(time.latency), cell::seconds(time.transfer),
               time.latency_binds() ? "latency"
                                    : Cell(fmt::format("level {}", time.busiest), time.busiest),
               cell::shown(row.algorithm == chosen ? "auto" : "")});
  }
  return report;
}

}  // namespace

int run_plan_why(const std::string& size, const SettingsOptions& options,
                 const std::string& asked_algorithm, bool as_json) {
  const std::uint64_t bytes = control::parse_size(size, "--why");
  const RunDirectory directory = RunDirectory::from_environment();
  const PlannedCluster cluster = planned_cluster(directory, options);
  const control::Topology& topology = cluster.topology;
  if (topology.servers() > kMostServers) {
    throw control::UsageError(fmt::format("--why: {} has {} servers; expected at most {}",
                                          topology.spec(), topology.servers(), kMostServers));
  }
  std::string algorithm = asked_algorithm.empty() ? std::string(control::kAuto) : asked_algorithm;
  if (cluster.running) {
    algorithm = control::completed_auto(algorithm, cluster.running->servers_per_core);
  }
  const auto costs = control::auto_costs(algorithm, topology, "--algorithm");
  if (!costs) {
    throw control::UsageError(
        "--why: it compares all algorithms; expected no --algorithm, or auto with the costs of a "
        "message: --algorithm auto:1us,40us");
  }
  const auto choice = control::make_choice(algorithm, topology, cluster.placement, "--topology");
  const std::string chosen = choice.plan_of(kKind, bytes).algorithm();
  const std::vector<Row> rows = rows_of(cluster, *costs, bytes);
  report_of(cluster, *costs, bytes, rows, chosen).write(as_json);
  return 0;
}

}  // namespace gradcube::cli
