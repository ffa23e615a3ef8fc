#include "cli/model/lines_report.h"

#include <bit>
#include <cstdint>
#include <fmt/format.h>

#include "cli/model/node_counts.h"
#include "control/base/units.h"

namespace gradcube::cli {
namespace {

using control::model::AllReduceCost;
using control::model::NodeCosts;

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

}  // namespace

Report lines_report(std::string_view nodes, std::string_view bytes, const NodeCosts& costs) {
  const auto length = static_cast<double>(control::parse_size(bytes, "--bytes"));
  Report report;
  report.line(fmt::format(
      "# M is {}; a message takes {}, each byte sent {:.4g} ns and each added {:.4g} ns",
      human_bytes(length), human_seconds(costs.alpha), costs.beta * 1e9, costs.gamma * 1e9));
  ReportTable& table = report.table("rows", {{"algorithm", "algorithm", Align::left},
                                             {"nodes", "nodes"},
                                             {"a", "a"},
                                             {"b, ns/B", "b"},
                                             {"a + bM", "seconds"}});
  for (const std::uint64_t N : parse_node_counts(nodes, "--nodes")) {
    for (const LineAlgorithm& each : kLineAlgorithms) {
      if (!each.takes_any_number && !std::has_single_bit(N)) continue;
      const AllReduceCost cost = each.cost(N, costs);
      table.add({each.name, cell::count(N), cell::seconds(cost.a),
                 Cell(fmt::format("{:.4g}", cost.b * 1e9), cost.b),
                 cell::seconds(cost.seconds(length))});
    }
  }
  return report;
}

}  // namespace gradcube::cli
