#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bcube_forwarding/path_set.h"
#include "bcube_forwarding/route.h"
#include "cli/cluster/running_cluster.h"
#include "cli/plan/measured_paths.h"
#include "cli/plan/planned_cluster.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/plan/base/topology.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using bcube::AddressSpace;
using bcube::Route;
using bcube::ServerId;

struct PathsOptions {
  SettingsOptions cluster;
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

// The port of the next server that a hop comes in by.
unsigned far_port(const AddressSpace& space, ServerId from, bcube::Hop hop) {
  const ServerId to = space.with_digit(from, hop.level, hop.digit);
  return space.port_of(to, hop.level, space.digit_back(from, hop.level, hop.digit));
}

bcube::HopFilter works_without(const AddressSpace& space, const std::vector<Down>& down) {
  return [&](ServerId from, bcube::Hop hop) {
    const ServerId to = space.with_digit(from, hop.level, hop.digit);
    const unsigned out = space.port_of(from, hop.level, hop.digit);
    const unsigned in = far_port(space, from, hop);
    return std::none_of(down.begin(), down.end(), [&](const Down& one) {
      return one.breaks(from, out) || one.breaks(to, in);
    });
  };
}

// Those of each hop: that it leaves through, and that it comes in by.
struct PathPorts {
  std::vector<unsigned> near;
  std::vector<unsigned> far;
};

PathPorts ports_on(const AddressSpace& space, ServerId from, const Route& route) {
  PathPorts ports;
  ServerId at = from;
  for (const bcube::Hop& hop : route) {
    ports.near.push_back(space.port_of(at, hop.level, hop.digit));
    ports.far.push_back(far_port(space, at, hop));
    at = space.with_digit(at, hop.level, hop.digit);
  }
  return ports;
}

// "0>3": out by port 0, in by port 3 of the next server. Where a server has one port to another
// the first says all.
std::string ports_text(const AddressSpace& space, const PathPorts& ports) {
  std::vector<std::string> hops;
  for (std::size_t i = 0; i < ports.near.size(); ++i) {
    hops.push_back(space.rails() > 1 ? fmt::format("{}>{}", ports.near[i], ports.far[i])
                                     : std::to_string(ports.near[i]));
  }
  return fmt::format("{}", fmt::join(hops, " "));
}

// The columns that tell a path; a level has one port of its number, but on a torus, and where a
// server has several on one switch.
std::vector<ReportColumn> path_columns(const AddressSpace& space, std::vector<ReportColumn> more) {
  std::vector<ReportColumn> columns = {
      {"hops", ""},
      {space.cabled() || space.rails() > 1 ? "ports" : "levels", "", Align::left},
      {"servers", "servers", Align::left},
      {{}, "levels"},
      {{}, "ports"},
      {{}, "far_ports"}};
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

std::vector<Cell> path_cells(const AddressSpace& space, ServerId from, const Route& route,
                             const std::vector<Cell>& more) {
  std::vector<std::string> names;
  auto addresses = nlohmann::ordered_json::array();
  for (const ServerId server : bcube::servers_on(space, from, route)) {
    names.push_back(space.text(server));
    addresses.push_back(control::address_json(space, server));
  }
  std::vector<unsigned> levels;
  for (const bcube::Hop& hop : route) levels.push_back(hop.level);
  const PathPorts ports = ports_on(space, from, route);
  std::vector<Cell> cells = {cell::shown(std::to_string(route.size())),
                             cell::shown(ports_text(space, ports)),
                             Cell(fmt::format("{}", fmt::join(names, " ")), std::move(addresses)),
                             cell::told(levels),
                             cell::told(ports.near),
                             cell::told(ports.far)};
  cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

void require_two(const AddressSpace& space, ServerId from, ServerId to) {
  if (from != to) return;
  throw control::UsageError(fmt::format(
      "--from and --to are both server {}; expected two different servers", space.text(from)));
}

// Those of the running cluster.
int run_measured(const PathsOptions& options) {
  if (options.cluster.given("absent")) {
    throw control::UsageError(
        "--absent: the running cluster has its own absent servers; give --topology too");
  }
  if (!options.without.empty()) {
    throw control::UsageError(
        "--without is for the paths of a topology: give --topology too, or take the link down "
        "with `gradcube impair --down`");
  }
  const auto directory = control::RunDirectory::from_environment();
  const RunningCluster cluster = running_cluster(directory);
  const AddressSpace& space = cluster.topology.space();
  const ServerId from = control::parse_server(cluster.topology, options.from, "--from");
  const ServerId to = control::parse_server(cluster.topology, options.to, "--to");
  require_two(space, from, to);
  const std::vector<MeasuredPath> paths = measure_paths(directory, space, from, to);
  const auto answering = std::count_if(paths.begin(), paths.end(), [](const MeasuredPath& path) {
    return path.round_trip_ns.has_value();
  });
  Report report;
  report.line(fmt::format("{}, from {} to {}: {} of {} paths answer", cluster.topology.spec(),
                          space.text(from), space.text(to), answering, paths.size()));
  ReportTable& table =
      report.table("paths", path_columns(space, {{"state", "state", Align::left},
                                                 {"round trip", "round_trip_ns"},
                                                 {"left on each link", "left_bps"}}));
  for (const MeasuredPath& path : paths) {
    const auto time = [](std::uint64_t ns) {
      return Cell(human_seconds(static_cast<double>(ns) / 1e9), ns);
    };
    const auto left = [](std::uint64_t bps) {
      return Cell(human_rate(static_cast<double>(bps)), bps);
    };
    table.add(path_cells(space, from, path.route,
                         {path.state, cell::known(path.round_trip_ns, time),
                          cell::known(path.bits_per_second_left, left)}));
  }
  report.write(options.json);
  return 0;
}

int run_paths(const PathsOptions& options) {
  if (!options.cluster.given("topology")) return run_measured(options);
  const auto topology = asked_topology(options.cluster);
  const AddressSpace& space = topology.space();
  const ServerId from = control::parse_server(topology, options.from, "--from");
  const ServerId to = control::parse_server(topology, options.to, "--to");
  require_two(space, from, to);
  const std::vector<Down> down = all_down(topology, options.without);
  const auto paths = bcube::parallel_paths(space, from, to, works_without(space, down));
  const auto all = bcube::parallel_paths(space, from, to);
  const unsigned hops = bcube::distance(space, from, to);
  Report report;
  report.line(fmt::format("{}, from {} to {}: {} of {} parallel paths", topology.spec(),
                          space.text(from), space.text(to), paths.size(), all.size()));
  ReportTable& table = report.table("paths", path_columns(space, {{"", ""}}));
  for (const Route& route : paths) {
    const bool substitute = std::find(all.begin(), all.end(), route) == all.end();
    table.add(path_cells(space, from, route, {cell::shown(substitute ? "substitute" : "")}));
  }
  if (hops > bcube::kMaxLevels) {
    report.line(fmt::format("{} and {} are {} hops apart, and a path has at most {}",
                            space.text(from), space.text(to), hops, bcube::kMaxLevels));
  } else if (all.empty()) {
    report.line(
        fmt::format("no path of {} hops or fewer leads there over servers that are not absent",
                    bcube::kMaxLevels));
  } else if (paths.empty()) {
    report.line("no path is left: what --without names breaks all of them");
  }
  report.write(options.json);
  return 0;
}

void add_options(CLI::App* command, PathsOptions* options) {
  options->cluster.add(command, "topology")
      ->description(std::string(control::kTopologyForms) +
                    " (default: the running cluster's, whose paths are measured)");
  options->cluster.add(command, "absent");
  add_text(command, "--from", options->from, "Where the paths begin, by its address: 0,0")
      ->required();
  add_text(command, "--to", options->to, "Where they end: 2,1")->required();
  add_text(command, "--without", options->without,
           "A server that is down, 0,1, or its link at one port, 0,1:0; may be repeated");
  command->add_flag("--json", options->json, "Print one JSON object");
}

}  // namespace

void add_paths(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "paths",
      "Show the parallel paths between two servers, of a topology or of the running cluster");
  auto& options = options_of<PathsOptions>(command, action, run_paths);
  add_options(command, &options);
  command->footer(
      "No two paths share a server between the ends, or a switch or cable. A path has at most 8\n"
      "hops. A substitute takes the place of a path that --without breaks, where there is one.\n"
      "Without --topology the daemon of --from probes the paths and detours that its flows may\n"
      "take: how long a round trip takes, and what its fullest link has left of its rate, which\n"
      "is no sum: paths that share a link share that. Where a server has several ports on one\n"
      "switch, 0>3 leads from port 0 of a server to port 3 of the next.\n"
      "Examples:\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1                  both paths\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1 --without 0,1    a server is "
      "down\n"
      "  gradcube paths --topology bcube:3,2 --from 0,0 --to 2,1 --without 0,0:1 --json\n"
      "  gradcube paths --topology torus:4,2 --from 0,0 --to 2,1                  four paths\n"
      "  gradcube paths --from 0,0 --to 2,1                       measured in the running cluster");
}

}  // namespace gradcube::cli
