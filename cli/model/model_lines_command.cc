#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <bit>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/model_options.h"
#include "cli/model/node_counts.h"
#include "cli/model/training_costs.h"
#include "cli/text/output.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/model/mgwfbp_model.h"

namespace gradcube::cli {
namespace {

using control::model::AllReduceCost;
using control::model::NodeCosts;
using nlohmann::ordered_json;

struct LinesOptions {
  std::string nodes = "4..64";
  std::string bytes = "100M";
  TrainingCostOptions costs;
  bool json = false;
};

// A row of Table II.
struct LineAlgorithm {
  std::string_view name;
  AllReduceCost (*cost)(std::uint64_t, const NodeCosts&);
  bool takes_any_number;  // of nodes; else a power of two
};

constexpr LineAlgorithm kLineAlgorithms[] = {
    {"binary_tree", control::model::binary_tree_cost, false},
    {"recursive_doubling", control::model::recursive_doubling_cost, false},
    {"halving_doubling", control::model::halving_doubling_cost, false},
    {"ring", control::model::ring_cost, true}};

struct LineRow {
  std::string_view algorithm;
  std::uint64_t nodes;
  AllReduceCost cost;
};

std::vector<LineRow> rows_of(const std::vector<std::uint64_t>& nodes, const NodeCosts& costs) {
  std::vector<LineRow> rows;
  for (const std::uint64_t N : nodes) {
    for (const LineAlgorithm& each : kLineAlgorithms) {
      if (!each.takes_any_number && !std::has_single_bit(N)) continue;
      rows.push_back({each.name, N, each.cost(N, costs)});
    }
  }
  return rows;
}

ordered_json rows_json(const std::vector<LineRow>& rows, double bytes) {
  ordered_json list = ordered_json::array();
  for (const LineRow& row : rows) {
    list.push_back({{"algorithm", row.algorithm},
                    {"nodes", row.nodes},
                    {"a", row.cost.a},
                    {"b", row.cost.b},
                    {"seconds", row.cost.seconds(bytes)}});
  }
  return {{"rows", std::move(list)}};
}

std::string rows_text(const std::vector<LineRow>& rows, double bytes, const NodeCosts& costs) {
  TextTable table({{"algorithm", Align::left}, {"nodes"}, {"a"}, {"b, ns/B"}, {"a + bM"}});
  for (const LineRow& row : rows) {
    table.add_row({std::string(row.algorithm), grouped(row.nodes), human_seconds(row.cost.a),
                   fmt::format("{:.4g}", row.cost.b * 1e9),
                   human_seconds(row.cost.seconds(bytes))});
  }
  return fmt::format(
             "# M is {}; a message takes {}, each byte sent {:.4g} ns and each added {:.4g} ns\n",
             human_bytes(bytes), human_seconds(costs.alpha), costs.beta * 1e9, costs.gamma * 1e9) +
         table.text();
}

int run_lines(const LinesOptions& options) {
  const std::vector<std::uint64_t> nodes = parse_node_counts(options.nodes, "--nodes");
  const auto bytes = static_cast<double>(control::parse_size(options.bytes, "--bytes"));
  const NodeCosts costs = training_costs(options.costs);
  const std::vector<LineRow> rows = rows_of(nodes, costs);
  write_output(options.json ? rows_json(rows, bytes).dump() + "\n" : rows_text(rows, bytes, costs));
  return 0;
}

}  // namespace

void add_model_lines(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "lines", "An all-reduce of M bytes as a line a + bM, by MG-WFBP's Table II");
  auto options = std::make_shared<LinesOptions>();
  command
      ->add_option("--nodes", options->nodes,
                   "Numbers of nodes: 64, 4,8,64, or 4..64 for each that is twice the one before")
      ->capture_default_str();
  command->add_option("--bytes", options->bytes, "M: 12.5M, 64Ki")->capture_default_str();
  add_training_cost_options(command, options->costs);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Trees, recursive doubling, and halving and doubling have rows for powers of two alone.\n"
      "Examples:\n"
      "  gradcube model lines --nodes 8\n"
      "  gradcube model lines --nodes 2..1024 --bytes 4K --alpha 5us --beta 0.2ns --gamma 0ns "
      "--json");
  command->callback([options, &action] { action = [options] { return run_lines(*options); }; });
}

}  // namespace gradcube::cli
