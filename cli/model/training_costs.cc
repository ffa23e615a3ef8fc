#include "cli/model/training_costs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "cli/cluster/fitted_costs.h"
#include "cli/cluster/running_cluster.h"
#include "cli/text/option_checks.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/settings/run_directory.h"
#include "control/training/training_model.h"

namespace gradcube::cli {
namespace {

using control::SetupError;
using control::UsageError;
using control::model::NodeCosts;

constexpr double kMostNanosecondsPerByte = 1e6;  // per byte

// "0.8ns" per byte: units.h has whole nanoseconds, and here they have decimals.
double seconds_per_byte(std::string_view text, std::string_view option) {
  const std::string_view number = text.substr(0, text.ends_with("ns") ? text.size() - 2 : 0);
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec != std::errc() || result.ptr != number.data() + number.size() ||
      !(value >= 0 && value <= kMostNanosecondsPerByte) || std::signbit(value)) {
    throw UsageError(fmt::format(
        "{} {}: this is no time of a byte; expected nanoseconds with their unit, for example 0.8ns",
        option, control::quoted(text)));
  }
  return value * 1e-9;
}

NodeCosts costs_of_running_cluster() {
  const auto directory = control::RunDirectory::from_environment();
  const RunningCluster cluster = running_cluster(directory);
  const auto costs = fitted_costs(directory, cluster.key, cluster.topology);
  if (!costs) {
    throw SetupError(
        "--fitted: nothing was fitted on the running cluster; `gradcube model fit` does it");
  }
  double slowest = std::numeric_limits<double>::infinity();
  for (const auto& level : cluster.topology.dimensions()) {
    if (level.rate_bps > 0) slowest = std::min(slowest, static_cast<double>(level.rate_bps));
  }
  const auto latency = *std::max_element(costs->latency.begin(), costs->latency.end());
  return {.alpha = static_cast<double>(latency + 2 * costs->overhead) * 1e-9, .beta = 8 / slowest};
}

}  // namespace

void add_training_cost_options(CLI::App* command, TrainingCostOptions& options) {
  add_text(command, "--alpha", options.alpha,
           "Time of a message between two nodes whatever its size [45.26us]");
  add_text(command, "--beta", options.beta,
           "Time of each byte between two nodes [0.8ns, which is 10 Gbit/s]");
  add_text(command, "--gamma", options.gamma, "Time to add one byte to another [0.1143ns]");
  command->add_flag("--fitted", options.fitted,
                    "Those that are not given: alpha as `gradcube model fit` has found it on the "
                    "running cluster, beta by its slowest link, and gamma 0");
}

NodeCosts training_costs(const TrainingCostOptions& options) {
  NodeCosts costs = options.fitted ? costs_of_running_cluster() : control::training::kPaperCosts;
  if (!options.alpha.empty()) {
    costs.alpha = static_cast<double>(control::parse_duration(options.alpha, "--alpha")) * 1e-9;
  }
  if (!options.beta.empty()) costs.beta = seconds_per_byte(options.beta, "--beta");
  if (!options.gamma.empty()) costs.gamma = seconds_per_byte(options.gamma, "--gamma");
  if (options.fitted && costs.beta == 0 && options.beta.empty()) {
    throw SetupError("--fitted: the links of the running cluster have no rate; expected a --beta");
  }
  return costs;
}

}  // namespace gradcube::cli
