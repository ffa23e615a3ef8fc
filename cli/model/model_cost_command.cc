#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/model/model_options.h"
#include "cli/text/output.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/model/bml_model.h"
#include "control/model/model_topology.h"

namespace gradcube::cli {
namespace {

using control::model::ModelTopology;
using nlohmann::ordered_json;

struct CostOptions {
  std::vector<std::string> topologies = {"bcube:3,2"};
  bool json = false;
};

struct CostRow {
  std::string topology;
  std::uint64_t servers;
  unsigned nics;        // of a server
  std::uint64_t ports;  // of a switch
  std::uint64_t switches;
  double relative;  // switches by those of the Fat-Tree whose servers have one NIC
};

// BCube(n,k), and the Fat-Trees of n-port switches for as many servers: with one NIC and with k.
void add_rows(const ModelTopology& bcube, std::vector<CostRow>& rows) {
  const std::uint64_t servers = bcube.servers();
  const std::uint64_t n = bcube.radices.front();
  const double least = control::model::fat_tree_switches(servers, n);
  const auto add = [&](std::string topology, unsigned nics, double switches) {
    rows.push_back({std::move(topology), servers, nics, n, static_cast<std::uint64_t>(switches),
                    switches / least});
  };
  const std::string fat_tree = fmt::format("fattree:{}", servers);
  add(bcube.spec(), bcube.levels(),
      static_cast<double>(control::model::bcube_switches(n, bcube.levels())));
  add(fat_tree, 1, least);
  if (bcube.levels() == 1) return;
  add(fat_tree, bcube.levels(), control::model::fat_tree_switches(servers, n, bcube.levels()));
}

ordered_json rows_json(const std::vector<CostRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const CostRow& row : rows) {
    list.push_back({{"topology", row.topology},
                    {"servers", row.servers},
                    {"nics_per_server", row.nics},
                    {"ports_per_switch", row.ports},
                    {"switches", row.switches},
                    {"relative", row.relative}});
  }
  return {{"rows", std::move(list)}};
}

std::string rows_text(const std::vector<CostRow>& rows) {
  TextTable table({{"topology", Align::left},
                   {"servers"},
                   {"NICs/server"},
                   {"ports/switch"},
                   {"switches"},
                   {"relative"}});
  for (const CostRow& row : rows) {
    table.add_row({row.topology, grouped(row.servers), std::to_string(row.nics), grouped(row.ports),
                   grouped(row.switches), fmt::format("{:.4g}", row.relative)});
  }
  return table.text();
}

int run_cost(const CostOptions& options) {
  std::vector<CostRow> rows;
  for (const std::string& spec : options.topologies) {
    const ModelTopology topology = control::model::parse_model_topology(spec, "--topology");
    if (topology.kind != ModelTopology::Kind::bcube || !topology.uniform()) {
      throw control::UsageError(
          fmt::format("--topology {}: the paper counts the switches of BCube, next to a Fat-Tree "
                      "of the same switches for as many servers; expected bcube:n,k, for example "
                      "bcube:3,2",
                      control::quoted(spec)));
    }
    add_rows(topology, rows);
  }
  write_output(options.json ? rows_json(rows).dump() + "\n" : rows_text(rows));
  return 0;
}

}  // namespace

void add_model_cost(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "cost", "The switches of a BCube, next to those of Fat-Trees for as many servers");
  auto options = std::make_shared<CostOptions>();
  command->add_option("--topology", options->topologies, "bcube:n,k; may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "The Fat-Tree has three layers of switches with as many ports as the BCube's (BML, section\n"
      "3.1). `relative` is by the switches of the one whose servers have one NIC.\n"
      "Example:\n"
      "  gradcube model cost --topology bcube:4,2 --topology bcube:16,4");
  command->callback([options, &action] { action = [options] { return run_cost(*options); }; });
}

}  // namespace gradcube::cli
