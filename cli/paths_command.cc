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
#include "bcube_forwarding/route.h"
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

// A server that is down, or its link at one port.
struct Down {
  ServerId server;
  std::optional<unsigned> port;

  bool breaks(ServerId end, unsigned at_port) const {
    return end == server && (!port || *port == at_port);
  }
};

// "2,1" or "2,1:0".
Down parse_down(const control::Topology& topology, const std::string& text) {
  const std::size_t colon = text.find(':');
  Down down{control::parse_server(topology, text.substr(0, colon), "--without"), std::nullopt};
  if (colon != std::string::npos) {
    const std::string where = fmt::format("--without {}: the port", control::quoted(text));
    down.port = static_cast<unsigned>(
        control::parse_integer(text.substr(colon + 1), where, 0, topology.ports() - 1));
  }
  return down;
}

std::vector<Down> all_down(const control::Topology& topology,
                           const std::vector<std::string>& texts) {
  std::vector<Down> down;
  for (const std::string& text : texts) down.push_back(parse_down(topology, text));
  return down;
}

bcube::HopFilter works_without(const AddressSpace& space, const std::vector<Down>& down) {
  return [&](ServerId from, unsigned level, ServerId to) {
    const unsigned out = space.port_of(from, level, space.digit(to, level));
    const unsigned in = space.port_of(to, level, space.digit(from, level));
    return std::none_of(down.begin(), down.end(), [&](const Down& one) {
      return one.breaks(from, out) || one.breaks(to, in);
    });
  };
}

// That the hops leave through, one for each.
std::vector<unsigned> ports_on(const AddressSpace& space, ServerId from, const Route& route) {
  std::vector<unsigned> ports;
  ServerId at = from;
  for (const bcube::Hop& hop : route) {
    ports.push_back(space.port_of(at, hop.level, hop.digit));
    at = space.with_digit(at, hop.level, hop.digit);
  }
  return ports;
}

std::string paths_json(const AddressSpace& space, ServerId from, const std::vector<Route>& paths) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Route& route : paths) {
    nlohmann::ordered_json path;
    for (const ServerId server : bcube::servers_on(space, from, route)) {
      path["servers"].push_back(control::address_json(space, server));
    }
    for (const bcube::Hop& hop : route) path["levels"].push_back(hop.level);
    path["ports"] = ports_on(space, from, route);
    list.push_back(path);
  }
  return nlohmann::ordered_json{{"paths", list}}.dump() + '\n';
}

// `all`: the paths when nothing is down.
std::string paths_table(const AddressSpace& space, ServerId from, const std::vector<Route>& paths,
                        const std::vector<Route>& all) {
  // A level has one port of its number, but on a torus.
  TextTable table({{"hops"},
                   {space.cabled() ? "ports" : "levels", Align::left},
                   {"servers", Align::left},
                   {""}});
  for (const Route& route : paths) {
    const std::vector<unsigned> ports = ports_on(space, from, route);
    std::vector<std::string> servers;
    for (const ServerId server : bcube::servers_on(space, from, route)) {
      servers.push_back(space.text(server));
    }
    const bool substitute = std::find(all.begin(), all.end(), route) == all.end();
    table.add_row({std::to_string(route.size()), fmt::format("{}", fmt::join(ports, " ")),
                   fmt::format("{}", fmt::join(servers, " ")), substitute ? "substitute" : ""});
  }
  return table.empty() ? "" : table.text();
}

int run_paths(const PathsOptions& options) {
  const auto topology = control::parse_topology(options.topology, "--topology");
  const AddressSpace& space = topology.space();
  const ServerId from = control::parse_server(topology, options.from, "--from");
  const ServerId to = control::parse_server(topology, options.to, "--to");
  if (from == to) {
    throw control::UsageError(fmt::format(
        "--from and --to are both server {}; expected two different servers", space.text(from)));
  }
  const std::vector<Down> down = all_down(topology, options.without);
  const auto paths = bcube::parallel_paths(space, from, to, works_without(space, down));
  if (options.json) {
    write_output(paths_json(space, from, paths));
    return 0;
  }
  const auto all = bcube::parallel_paths(space, from, to);
  const unsigned hops = bcube::distance(space, from, to);
  print("{}, from {} to {}: {} of {} parallel paths\n{}", topology.spec(), space.text(from),
        space.text(to), paths.size(), all.size(), paths_table(space, from, paths, all));
  if (hops > bcube::kMaxLevels) {
    print("{} and {} are {} hops apart, and a path has at most {}\n", space.text(from),
          space.text(to), hops, bcube::kMaxLevels);
  }
  return 0;
}

void add_options(CLI::App* command, PathsOptions* options) {
  command
      ->add_option("--topology", options->topology, "bcube:n,k, bcube:4x3x2, star:N or torus:n,h")
      ->required()
      ->check(not_empty());
  command->add_option("--from", options->from, "Where the paths begin, by its address: 0,0")
      ->required()
      ->check(not_empty());
  command->add_option("--to", options->to, "Where they end: 2,1")->required()->check(not_empty());
  command
      ->add_option("--without", options->without,
                   "A server that is down, 0,1, or its link at one port, 0,1:0; may be repeated")
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
      "No two paths share a server between the ends, or a switch or cable. A path has at most 8\n"
      "hops. A substitute takes the place of a path that --without breaks, where there is one.\n"
      "Examples:\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1                  both paths\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1 --without 0,1    a server is "
      "down\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1 --without 0,0:1 --json\n"
      "  gradcube paths --topology torus:4,2 --from 0,0 --to 2,1                  four paths");
  command->callback([options, &action] { action = [options] { return run_paths(*options); }; });
}

}  // namespace gradcube::cli
