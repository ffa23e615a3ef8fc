#include "cli/model/figure_measured.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/text/json_fields.h"
#include "cli/text/json_file.h"
#include "cli/text/topology_text.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/base/topology.h"
#include "control/settings/link_rates.h"

namespace gradcube::cli {
namespace {

using control::model::MeasuredRun;
using nlohmann::json;

// What nothing that was measured exceeds; beyond, a figure would have no numbers for it.
constexpr double kMostSeconds = 1e9;
constexpr double kMostBitsPerSecond = 1e15;

// Of all links; nothing if they have none, or several.
std::optional<double> rate_of(const json& report) {
  const json& rate = field(report, "rate_bps");
  const json& first = rate.is_array() && !rate.empty() ? rate.front() : rate;
  if (!first.is_number() || first.get<double>() <= 0) return std::nullopt;
  if (first.get<double>() > kMostBitsPerSecond) return std::nullopt;
  if (rate.is_array()) {
    for (const json& other : rate) {
      if (other != first) return std::nullopt;
    }
  }
  return first.get<double>();
}

// A tree whose uplinks bind nobody is a Fat-Tree, and like a star of as many servers: then the run
// has the rate of the servers' links.
void read_fat_tree(const json& report, MeasuredRun& run) {
  const control::Topology topology = control::parse_topology(run.topology, "topology");
  if (!topology.is_tree()) return;
  const auto rates = control::link_rates_from_json(field(report, "rate_bps"), "rate_bps");
  rates.validate(topology);
  const control::Topology rated = rates.on(topology);
  for (unsigned level = 1; level < rated.link_levels(); ++level) {
    if (rated.share_bps(level) < rated.share_bps(0)) return;
  }
  run.like = fmt::format("star:{}", topology.servers());
  if (rates.limited()) run.bits_per_second = rated.share_bps(0);
}

// A figure says itself which topologies it has.
std::string default_of(const std::string& topology) {
  try {
    return std::string(control::default_algorithm(control::parse_topology(topology, "topology")));
  } catch (const control::UsageError&) {
    return "";
  }
}

}  // namespace

MeasuredRun read_measured(const std::string& path) {
  const JsonFile file("--measured", path, "what `gradcube perf allreduce --json` printed");
  const json report = file.content();
  if (!report.is_object() || !field(report, "results").is_array()) file.refuse("it is no report");
  if (!field(report, "collective").is_null()) file.refuse("it is one of another collective");
  if (!field(report, "members").is_null()) file.refuse("it is one of a part of the servers");
  if (flag_field(report, "reproducible").value_or(false)) {
    file.refuse("it is one of a reproducible job, which carries more bytes");
  }
  if (count_field(report, "trainers_per_server").value_or(1) != 1) {
    file.refuse("it is one of several trainers on a server");
  }
  if (!items(field(report, "topology"), "absent").empty()) {
    file.refuse("servers of its topology are absent");
  }
  const std::string topology = topology_text(field(report, "topology"));
  if (topology.empty()) file.refuse("it does not say on which topology it was measured");
  MeasuredRun run{.topology = topology,
                  .algorithm = text_field(report, "algorithm").value_or(default_of(topology)),
                  .bits_per_second = rate_of(report),
                  .results = {}};
  try {
    read_fat_tree(report, run);
  } catch (const control::UsageError&) {
    // It is of a topology that figures alone have, or has no rates of it: it is like no other.
  }
  for (const json& result : items(report, "results")) {
    const auto bytes = count_field(result, "bytes");
    const auto seconds = number_field(result, "seconds_median");
    if (!bytes || !seconds || !(*seconds > 0 && *seconds < kMostSeconds)) {
      file.refuse("it has a result without a time");
    }
    // Several in flight share their time.
    if (count_field(result, "in_flight").value_or(1) != 1) continue;
    run.results.emplace_back(*bytes, *seconds);
  }
  if (run.results.empty()) file.refuse("it has no result of one collective at a time");
  return run;
}

}  // namespace gradcube::cli
