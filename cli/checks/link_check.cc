#include "cli/checks/link_check.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>
#include <utility>

#include "cli/cluster/control_client.h"
#include "cli/cluster/host_load.h"
#include "cli/cluster/interrupt.h"
#include "cli/measure/harness.h"
#include "cli/measure/measure_collective.h"
#include "cli/text/json_fields.h"
#include "cli/text/units_text.h"
#include "control/base/errors.h"
#include "control/model/line_fit.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "control/plan/base/topology_links.h"

namespace gradcube::cli {
namespace {

using control::NeighbourLink;
using nlohmann::json;

constexpr unsigned kIterations = 8;
constexpr std::uint64_t kSmallCount = 2;  // elements: one for each of the two
constexpr double kUnlimitedBytes = 4e6;   // of a transfer where links have no rate
// A frame or two are no rate; and both trainers hold the buffer in memory.
constexpr double kLeastBytes = 64e3;
constexpr double kMostProbeBytes = 64e6;
using Element = float;

// The server's port that leads to its neighbour. On a torus two are at one level.
const json* port_to(const json& status, const control::AddressSpace& space,
                    control::ServerId server, control::ServerId other, unsigned level) {
  const unsigned port_number = space.port_of(server, level, space.digit(other, level));
  const auto leads_there = [&](const json& port) {
    return space.cabled() ? count_field(port, "port") == port_number
                          : count_field(port, "level") == level;
  };
  for (const json& entry : items(status, "servers")) {
    if (address_text(field(entry, "address")) != space.text(server)) continue;
    for (const json& port : items(entry, "ports")) {
      if (leads_there(port)) return &port;
    }
  }
  return nullptr;
}

std::uint64_t transfer_count(double configured_bps) {
  const double seconds = std::chrono::duration<double>(LinkCheck::kTransfer).count();
  const double bytes = configured_bps > 0
                           ? std::clamp(configured_bps / 8 * seconds, kLeastBytes, kMostProbeBytes)
                           : kUnlimitedBytes;
  return static_cast<std::uint64_t>(bytes) / sizeof(Element);
}

// Of the slowest link between the two.
double configured_bps(const RunningCluster& cluster, const NeighbourLink& link) {
  return static_cast<double>(
      control::hop_bps(cluster.topology, link.first, link.second, link.level));
}

}  // namespace

double percent_of_rate(const LinkFigures& figures, double configured_bps) {
  return std::floor(1e3 * figures.payload_bps / configured_bps) / 10;
}

std::string problem_of(const LinkFigures& figures, double configured_bps,
                       const LinkCheckSettings& settings) {
  if (figures.sent == 0) return "not measured: the daemons have counted no segments of it";
  std::vector<std::string> problems;
  // First what may be the reason for the others. Rounded away from what is expected.
  const auto sent = static_cast<double>(figures.sent);
  const auto lost = static_cast<double>(figures.lost);
  if (lost > settings.most_lost * sent) {
    problems.push_back(
        fmt::format("lossy: {:g} % of the segments were lost, expected at most {:g} %",
                    std::ceil(1e4 * lost / sent) / 100, 100 * settings.most_lost));
  }
  if (configured_bps > 0 && figures.payload_bps < settings.least_rate * configured_bps) {
    problems.push_back(fmt::format("slow: {:g} % of the configured rate, expected at least {:g} %",
                                   percent_of_rate(figures, configured_bps),
                                   100 * settings.least_rate));
  }
  const auto& most = settings.most_round_trip_seconds;
  if (most && figures.round_trip_seconds > *most) {
    problems.push_back(fmt::format("late: a round trip takes {}, expected at most {}",
                                   human_seconds(figures.round_trip_seconds),
                                   human_seconds(*most)));
  }
  return fmt::format("{}", fmt::join(problems, "; "));
}

std::string reported_problem(const json& status, const RunningCluster& cluster,
                             const NeighbourLink& link) {
  const control::AddressSpace& space = cluster.topology.space();
  for (const auto& [server, other] :
       {std::pair(link.first, link.second), std::pair(link.second, link.first)}) {
    const json* port = port_to(status, space, server, other, link.level);
    if (port == nullptr) continue;
    for (const json& neighbour : items(*port, "down")) {
      if (address_text(neighbour) != space.text(other)) continue;
      const json& short_only = items(*port, "short_only");
      if (std::find(short_only.begin(), short_only.end(), neighbour) != short_only.end()) {
        return fmt::format(
            "small frames pass between {} and {}, frames of MTU {} do not: raise the MTU of the "
            "switches and interfaces on the way, or start the cluster with a smaller one (--mtu)",
            space.text(server), space.text(other), count_field(status, "mtu").value_or(0));
      }
      return fmt::format("down: {} does not hear {}", space.text(server), space.text(other));
    }
    if (const auto wrong = text_field(*port, "wrong")) return *wrong;
  }
  return "";
}

std::string left_out_for(const RunningCluster& cluster, const NeighbourLink& link) {
  for (const control::ServerId server : {link.first, link.second}) {
    if (!control::is_aggregator(cluster.aggregators, server)) continue;
    return fmt::format("not measured: {} takes no trainers", cluster.topology.space().text(server));
  }
  return "";
}

std::string link_job_name(const std::string& job, const NeighbourLink& link) {
  return fmt::format("{}-{}-{}-{}", job, link.level, link.first, link.second);
}

// One link: its job with the trainers that are here.
class LinkCheck::Measurement {
 public:
  Measurement(const RunningCluster& cluster, const LinkCheckSettings& settings,
              const NeighbourLink& link)
      : choice_(choice_of(cluster.topology, link)),
        job_(link_job_name(settings.job, link)),
        count_(transfer_count(configured_bps(cluster, link))) {
    perf_.members = {link.first, link.second};
    perf_.iterations = kIterations;
    perf_.timeout = settings.timeout;
    trainers_ = trainers_of(cluster, choice_.placement());
  }

  const std::string& job() const { return job_; }

  // Any thread. The sessions stay open until this dies, so that the daemon still has the flows.
  void run() {
    try {
      harness_.emplace(trainers_, choice_.placement().trainers(), job_, perf_);
      figures_.round_trip_seconds = median_seconds(kSmallCount);
      measure_full_frames();
    } catch (const std::exception& error) {
      problem_ = fmt::format("not measured: {}", error.what());
    }
  }

  // Reads what became of its segments.
  void finish(const json& status, const json& flows, const LinkCheckSettings& settings,
              double core_wait, LinkResult& result) {
    if (!problem_.empty()) {
      result.problem = problem_;
      if (only_small_pass_) {
        result.problem = fmt::format("{}; {}", mtu_problem(status), problem_);
      }
      return;
    }
    if (items(flows, "flows").size() < count_field(flows, "flow_count").value_or(0)) {
      result.problem = "not measured: the daemon tells of some of its flows only";
      return;
    }
    for (const json& flow : items(flows, "flows")) {
      if (text_field(flow, "job") != job_) continue;
      const std::uint64_t resent = count_field(flow, "resent").value_or(0);
      figures_.sent += count_field(flow, "sent").value_or(0);
      figures_.lost += resent - std::min(resent, count_field(flow, "spurious").value_or(0));
    }
    figures_.core_wait = core_wait;
    result.figures = figures_;
    result.problem = problem_of(figures_, result.configured_bps, settings);
  }

 private:
  double median_seconds(std::uint64_t count) {
    return control::model::median(measure_collective(*harness_, choice_, perf_, count).seconds);
  }

  void measure_full_frames() {
    try {
      const double seconds = median_seconds(count_);
      figures_.payload_bps = static_cast<double>(count_ * sizeof(Element)) * 8 / seconds;
    } catch (const IterationTimeout&) {
      only_small_pass_ = true;
      throw;
    }
  }

  // What it most probably is where small frames took a moment, and nothing came of large ones.
  static std::string mtu_problem(const json& status) {
    return fmt::format(
        "small frames pass, and what frames of MTU {} carry did not come in time: unless the link "
        "is slow or lossy, compare the MTUs of the interfaces and switches between the two",
        count_field(status, "mtu").value_or(0));
  }

  static control::PlanChoice choice_of(const control::Topology& topology,
                                       const NeighbourLink& link) {
    const std::vector<control::ServerId> members{link.first, link.second};
    const auto placement = control::Placement::of(topology, members, "the link");
    return control::make_choice(control::default_algorithm_of_jobs(topology, placement), topology,
                                placement, "the link");
  }

  const control::PlanChoice choice_;
  const std::string job_;
  const std::uint64_t count_;
  PerfSettings perf_;
  std::vector<PerfTrainer> trainers_;
  std::optional<Harness> harness_;
  LinkFigures figures_;
  std::string problem_;
  bool only_small_pass_ = false;
};

LinkCheck::LinkCheck(const control::RunDirectory& directory, const LinkCheckSettings& settings)
    : directory_(directory),
      settings_(settings),
      cluster_(read_running_cluster(ask_status(directory))) {
  ask_flows(directory, {"check"});  // refuses who may not see them, before a link is measured
  const auto is_here = [this](control::ServerId server) {
    return cluster_.sockets.contains(server);
  };
  for (auto& round : control::neighbour_rounds(cluster_.topology)) {
    std::erase_if(round, [&](const NeighbourLink& link) {
      return !is_here(link.first) && !is_here(link.second);
    });
    if (!round.empty()) rounds_.push_back(std::move(round));
  }
}

bool LinkCheck::others_are_elsewhere() const {
  return cluster_.sockets.size() < cluster_.topology.servers();
}

std::vector<LinkResult> LinkCheck::run(const std::vector<NeighbourLink>& round) const {
  std::vector<LinkResult> results;
  const json status = ask_status(directory_);
  for (std::size_t begin = 0; begin < round.size(); begin += kMostAtOnce) {
    const std::size_t count = std::min<std::size_t>(kMostAtOnce, round.size() - begin);
    run_at_once(status, round.data() + begin, count, results);
  }
  return results;
}

void LinkCheck::run_at_once(const json& status, const NeighbourLink* links, std::size_t count,
                            std::vector<LinkResult>& results) const {
  struct Measured {
    std::size_t result;
    std::unique_ptr<Measurement> measurement;
  };
  std::vector<Measured> measured;
  for (const NeighbourLink& link : std::span(links, count)) {
    results.push_back({.link = link,
                       .configured_bps = configured_bps(cluster_, link),
                       .problem = reported_problem(status, cluster_, link),
                       .left_out = left_out_for(cluster_, link)});
    if (!results.back().problem.empty() || !results.back().left_out.empty()) continue;
    measured.push_back(
        {results.size() - 1, std::make_unique<Measurement>(cluster_, settings_, link)});
  }
  const auto processes = daemon_processes(status);
  const ThreadLoads loads = thread_loads(processes);
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (const Measured& one : measured) {
      threads.push_back(
          start_thread([measurement = one.measurement.get()] { measurement->run(); }));
    }
  }
  const double core_wait =
      longest_core_wait(loads, thread_loads(processes)) /
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (InterruptGuard::interrupted()) throw control::SetupError("interrupted");
  const json after = ask_status(directory_);
  for (const Measured& one : measured) {
    LinkResult& result = results[one.result];
    // A link that went down a moment ago may have been measured over other paths.
    result.problem = reported_problem(after, cluster_, result.link);
    if (!result.problem.empty()) continue;
    const json flows = ask_flows(directory_, {one.measurement->job()});
    one.measurement->finish(after, flows, settings_, core_wait, result);
  }
}

}  // namespace gradcube::cli
