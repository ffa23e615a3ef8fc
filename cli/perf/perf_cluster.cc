#include "cli/perf/perf_cluster.h"

#include <fmt/format.h>
#include <utility>

#include "cli/cluster/cluster_hosts.h"
#include "cli/measure/perf_collective.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;

// Where some servers are elsewhere, their trainers are those of the same command on their hosts.
void require_trainers(const std::vector<PerfTrainer>& trainers, const control::Placement& placement,
                      const std::string& job) {
  if (trainers.empty()) throw_none_is_here();
  if (trainers.size() == placement.trainers() || !job.empty()) return;
  throw control::UsageError(fmt::format(
      "{} of the job's {} servers are on this host: run this command on all of their hosts, with "
      "the same --job NAME",
      trainers.size() / placement.trainers_per_server(), placement.ranks()));
}

}  // namespace

std::string PerfCluster::unusual_algorithm() const {
  if (!algorithm.empty() || placement().is_grid()) return "";
  return choice.plan(0).algorithm();
}

PerfLinks PerfCluster::links(control::CollectiveKind kind, std::uint64_t bytes) const {
  return links(choice.plan_of(kind, bytes), kind);
}

PerfLinks PerfCluster::links(const control::Plan& plan, control::CollectiveKind kind) const {
  PerfLinks links{.ranks = placement().trainers()};
  if (const auto busiest = busiest_link(plan, kind)) {
    links.busiest_share = busiest->share;
    if (running.rates.limited()) {
      links.rate_bps = static_cast<double>(running.rates.of(busiest->level));
    }
  }
  return links;
}

PerfCluster read_perf_cluster(const RunDirectory& directory, const JobOptions& options,
                              JobSettings& settings) {
  RunningCluster running = running_cluster(directory);
  const control::Topology& topology = running.topology;
  settings.members = members_of(topology, options.members);
  const auto placement = placement_of(running, settings.members, "--members")
                             .with_trainers(settings.trainers, "--trainers");
  settings.algorithm = control::completed_auto(options.algorithm, running.servers_per_core);
  const std::string algorithm =
      settings.algorithm.empty()
          ? std::string(control::default_algorithm_of_jobs(topology, placement))
          : settings.algorithm;
  control::PlanChoice choice = control::make_choice(algorithm, topology, placement, "--algorithm");
  require_daemons(running, placement);
  std::vector<PerfTrainer> trainers = trainers_of(running, placement);
  require_trainers(trainers, placement, options.job);
  return {std::move(choice), std::move(trainers), std::move(running), settings.algorithm};
}

std::string cluster_text(const PerfCluster& cluster) {
  const std::uint32_t ranks = cluster.placement().ranks();
  const unsigned trainers = cluster.placement().trainers_per_server();
  return fmt::format("{}, {}{}, {}{}", cluster.topology().spec(),
                     ranks < cluster.topology().servers() ? fmt::format("{} of ", ranks) : "",
                     control::servers_text(cluster.topology()),
                     trainers > 1 ? fmt::format("{} trainers on each, ", trainers) : "",
                     rates_text(cluster.running));
}

}  // namespace gradcube::cli
