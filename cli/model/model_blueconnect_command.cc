#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <vector>

#include "cli/model/model_options.h"
#include "cli/model/model_report.h"
#include "cli/text/output.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/model/blueconnect_model.h"
#include "control/model/grid.h"
#include "control/model/transfer_time.h"

namespace gradcube::cli {
namespace {

using control::model::BlueConnectStage;
using control::model::ModelLoad;
using control::model::ModelRow;

constexpr std::uint64_t kMostGroupFactor = 65536;

struct BlueConnectOptions {
  std::string network = "tree";
  std::vector<std::string> factors;
  std::vector<std::string> rates;
  ModelLoadOptions load;
  bool json = false;
};

std::vector<BlueConnectStage> stages_of(const BlueConnectOptions& options) {
  if (options.factors.size() != options.rates.size()) {
    throw control::UsageError(fmt::format(
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
      throw control::UsageError(fmt::format("--factors {}: expected at most {} learners",
                                            fmt::join(options.factors, "x"),
                                            control::model::kMostServers));
    }
    stages.push_back({p, static_cast<double>(control::parse_rate(options.rates[i], "--rates"))});
  }
  return stages;
}

// One level, two levels and BlueConnect; a gradient over the slowest network is T_F.
std::vector<ModelRow> rows_of(const BlueConnectOptions& options,
                              const std::vector<BlueConnectStage>& stages, const ModelLoad& load) {
  const bool tree = options.network == "tree";
  std::uint64_t learners = 1;
  for (const BlueConnectStage& stage : stages) learners *= stage.p;
  const double least_w = load.bits_per_second;
  const double t_f = control::model::transfer_seconds(load.bytes, least_w);
  std::vector<ModelRow> rows;
  const auto add = [&](std::string algorithm, double seconds, std::string source) {
    rows.push_back(
        {.topology = fmt::format("{}:{}", options.network, fmt::join(options.factors, "x")),
         .algorithm = std::move(algorithm),
         .servers = learners,
         .seconds = seconds,
         .relative = seconds / t_f,
         .source = std::move(source)});
  };
  const double alpha = load.latency_seconds;
  add("ring", control::model::one_level_seconds(learners, load.bytes, alpha, least_w),
      "BlueConnect Eq. 6");
  add("two-level",
      control::model::two_level_seconds(stages[0].p, learners / stages[0].p, load.bytes, alpha,
                                        stages[0].w, least_w),
      "BlueConnect Eq. 7");
  add("blueconnect",
      tree ? control::model::blueconnect_tree_seconds(stages, load.bytes, alpha)
           : control::model::blueconnect_torus_seconds(stages, load.bytes, alpha),
      tree ? "BlueConnect Eq. 9" : "BlueConnect Eq. 10");
  return rows;
}

int run_blueconnect(const BlueConnectOptions& options) {
  if (options.network != "tree" && options.network != "torus") {
    throw control::UsageError(
        fmt::format("--network {}: there is no such network; expected tree "
                    "or torus",
                    control::quoted(options.network)));
  }
  const std::vector<BlueConnectStage> stages = stages_of(options);
  ModelLoad load = load_of(options.load);
  load.bits_per_second =
      std::min_element(stages.begin(), stages.end(), [](const auto& left, const auto& right) {
        return left.w < right.w;
      })->w;
  const std::vector<ModelRow> rows = rows_of(options, stages, load);
  write_output(options.json ? model_json(rows).dump() + "\n" : model_text(rows, load));
  return 0;
}

}  // namespace

void add_model_blueconnect(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "blueconnect", "All-reduce over networks of different rates, by BlueConnect's Eq. 6 to 10");
  auto options = std::make_shared<BlueConnectOptions>();
  command->add_option("--network", options->network, "tree (Eq. 9) or torus (Eq. 10)")
      ->capture_default_str();
  command
      ->add_option("--factors", options->factors,
                   "Learners of each level, from inside a node up: 3x2x2")
      ->required()
      ->allow_extra_args(false)
      ->delimiter('x');
  command->add_option("--rates", options->rates, "Rate of each level: 256gbit,100gbit,200gbit")
      ->required()
      ->allow_extra_args(false)
      ->delimiter(',');
  add_load_options(command, options->load);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "In a tree, all learners below a port share its rate. In a torus, those of one node (the\n"
      "first factor) share the cables of each dimension. T_F is at the slowest rate.\n"
      "Example:\n"
      "  gradcube model blueconnect --factors 3x2x2 --rates 256gbit,100gbit,200gbit --bytes 100M");
  command->callback(
      [options, &action] { action = [options] { return run_blueconnect(*options); }; });
}

}  // namespace gradcube::cli
