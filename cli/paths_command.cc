#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bcube_forwarding/path_set.h"
#include "cli/commands.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/text_table.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/plan/topology.h"

namespace gradcube::cli {
namespace {

using bcube::AddressSpace;
using bcube::Route;
using bcube::ServerId;

struct PathsOptions {
  std::string topology;
  std::string from;
  std::string to;
  std::vector<std::string> without;
  bool json = false;
};

// A server that is down, or its link at one level.
struct Down {
  ServerId server;
  std::optional<unsigned> level;

  bool breaks(ServerId end, unsigned at_level) const {
    return end == server && (!level || *level == at_level);
  }
};

control::Topology topology_of(const std::string& text) {
  const auto topology = control::parse_topology(text, "--topology");
  if (topology.kind() == "torus") {
    throw control::UsageError(
        fmt::format("--topology {}: there are parallel paths only on a BCube; expected bcube:n,k "
                    "or star:N, for example bcube:3,2",
                    control::quoted(text)));
  }
  return topology;
}

// "2,1" or "2,1:0".
Down parse_down(const control::Topology& topology, const std::string& text) {
  const std::size_t colon = text.find(':');
  Down down{control::parse_server(topology, text.substr(0, colon), "--without"), std::nullopt};
  if (colon != std::string::npos) {
    const std::string where = fmt::format("--without {}: the level", control::quoted(text));
    down.level = static_cast<unsigned>(
        control::parse_integer(text.substr(colon + 1), where, 0, topology.levels() - 1));
  }
  return down;
}

std::vector<Down> all_down(const control::Topology& topology,
                           const std::vector<std::string>& texts) {
  std::vector<Down> down;
  for (const std::string& text : texts) down.push_back(parse_down(topology, text));
  return down;
}

bcube::HopFilter works_without(const std::vector<Down>& down) {
  return [&down](ServerId from, unsigned level, ServerId to) {
    return std::none_of(down.begin(), down.end(), [&](const Down& one) {
      return one.breaks(from, level) || one.breaks(to, level);
    });
  };
}

std::string paths_json(const AddressSpace& space, ServerId from, const std::vector<Route>& paths) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Route& route : paths) {
    nlohmann::ordered_json path;
    for (const ServerId server : bcube::servers_on(space, from, route)) {
      path["servers"].push_back(control::address_json(space, server));
    }
    for (const bcube::Hop& hop : route) path["levels"].push_back(hop.level);
    list.push_back(path);
  }
  return nlohmann::ordered_json{{"paths", list}}.dump() + '\n';
}

// `all`: the paths when nothing is down.
std::string paths_table(const AddressSpace& space, ServerId from, const std::vector<Route>& paths,
                        const std::vector<Route>& all) {
  TextTable table({{"hops"}, {"levels", Align::left}, {"servers", Align::left}, {""}});
  for (const Route& route : paths) {
    std::vector<unsigned> levels;
    for (const bcube::Hop& hop : route) levels.push_back(hop.level);
    std::vector<std::string> servers;
    for (const ServerId server : bcube::servers_on(space, from, route)) {
      servers.push_back(space.text(server));
    }
    const bool substitute = std::find(all.begin(), all.end(), route) == all.end();
    table.add_row({std::to_string(route.size()), fmt::format("{}", fmt::join(levels, " ")),
                   fmt::format("{}", fmt::join(servers, " ")), substitute ? "substitute" : ""});
  }
  return table.empty() ? "" : table.text();
}

int run_paths(const PathsOptions& options) {
  const auto topology = topology_of(options.topology);
  const AddressSpace& space = topology.space();
  const ServerId from = control::parse_server(topology, options.from, "--from");
  const ServerId to = control::parse_server(topology, options.to, "--to");
  if (from == to) {
    throw control::UsageError(fmt::format(
        "--from and --to are both server {}; expected two different servers", space.text(from)));
  }
  const std::vector<Down> down = all_down(topology, options.without);
  const auto paths = bcube::parallel_paths(space, from, to, works_without(down));
  if (options.json) {
    write_output(paths_json(space, from, paths));
    return 0;
  }
  const auto all = bcube::parallel_paths(space, from, to);
  print("{}, from {} to {}: {} of {} parallel paths\n{}", topology.spec(), space.text(from),
        space.text(to), paths.size(), all.size(), paths_table(space, from, paths, all));
  return 0;
}

void add_options(CLI::App* command, PathsOptions* options) {
  command->add_option("--topology", options->topology, "bcube:n,k, bcube:4x3x2 or star:N")
      ->required()
      ->check(not_empty());
  command->add_option("--from", options->from, "Where the paths begin, by its address: 0,0")
      ->required()
      ->check(not_empty());
  command->add_option("--to", options->to, "Where they end: 2,1")->required()->check(not_empty());
  command
      ->add_option("--without", options->without,
                   "A server that is down, 0,1, or its link at one level, 0,1:0; may be repeated")
      ->allow_extra_args(false)
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print one JSON object");
}

}  // namespace

void add_paths(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "paths",
      "Show the parallel paths between two servers, also where some are down; needs no cluster");
  auto options = std::make_shared<PathsOptions>();
  add_options(command, options.get());
  command->footer(
      "No two paths share a server between the ends, or a switch. A path has at most 8 hops. A\n"
      "substitute takes the place of a path that --without breaks, where there is one.\n"
      "Examples:\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1                  both paths\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1 --without 0,1    a server is "
      "down\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1 --without 0,0:1 --json");
  command->callback([options, &action] { action = [options] { return run_paths(*options); }; });
}

}  // namespace gradcube::cli
