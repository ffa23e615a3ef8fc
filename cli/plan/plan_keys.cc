#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <optional>

#include "cli/plan/plan_forms.h"
#include "cli/text/command.h"
#include "cli/text/keys_file.h"
#include "cli/text/option_checks.h"
#include "cli/text/units_text.h"
#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/checkpoint/hub_key.h"
#include "control/checkpoint/key_optimizers.h"
#include "control/checkpoint/optimizer_settings.h"
#include "control/hub/binding.h"
#include "control/hub/chunks.h"

namespace gradcube::cli {
namespace {

using control::UsageError;
using control::hub::HubLoad;

constexpr int kMostNodes = 1024;

// "0,0,1,1": one for each of `count`; all -1 where the option is not given.
std::vector<int> parse_nodes(const std::string& text, std::size_t count, const char* option,
                             const char* of) {
  if (text.empty()) return std::vector<int>(count, -1);
  std::vector<int> nodes;
  for (const std::string_view item : control::split(text, ',')) {
    nodes.push_back(static_cast<int>(control::parse_integer(item, option, 0, kMostNodes)));
  }
  if (nodes.size() != count) {
    throw UsageError(fmt::format("{} {}: {} NUMA nodes for {} {}; expected one for each", option,
                                 control::quoted(text), nodes.size(), count, of));
  }
  return nodes;
}

// All that is shown.
struct KeyLoads {
  const control::Plan& plan;
  std::vector<control::Lcore> lcores;
  std::vector<control::HubKey> keys;
  std::uint64_t chunk_bytes = 0;
  std::vector<control::hub::Chunk> chunks{};
  std::vector<control::hub::HubPath> paths{};
  control::hub::HubLoads loads{};
  std::optional<std::vector<double>> ports{};
  HubLoad all{};

  double fair_path(std::size_t path) const {
    double weights = 0;
    for (const auto& each : paths) weights += each.weight;
    return static_cast<double>(all.bytes) * paths[path].weight / weights;
  }
  double fair_lcore() const {
    double bytes = 0;
    for (const HubLoad& load : loads.lcores) bytes += static_cast<double>(load.bytes);
    return bytes / static_cast<double>(lcores.size());
  }
  // Each on a server of its own, of which the busiest has the lcores, nodes and ports.
  bool has_roots() const {
    return std::ranges::any_of(paths, [&](const auto& path) { return path.root != paths[0].root; });
  }
  std::string root_text(control::Rank root) const {
    return plan.space().text(plan.placement().server(root));
  }
  // By NUMA node of the lcores; empty where no node is known.
  std::map<int, HubLoad> nodes() const {
    std::map<int, HubLoad> nodes;
    for (std::size_t i = 0; i < lcores.size(); ++i) {
      if (lcores[i].numa_node < 0) continue;
      nodes[lcores[i].numa_node].chunks += loads.lcores[i].chunks;
      nodes[lcores[i].numa_node].bytes += loads.lcores[i].bytes;
    }
    return nodes;
  }
  std::vector<unsigned> paths_of(unsigned lcore) const {
    std::vector<unsigned> served;
    for (unsigned p = 0; p < paths.size(); ++p) {
      const auto& own = paths[p].lcores;
      if (paths[p].root != control::hub::busiest_root(paths, loads.paths)) continue;
      if (std::find(own.begin(), own.end(), lcore) != own.end()) served.push_back(p);
    }
    return served;
  }
};

std::uint64_t chunk_bytes_of(const KeyLoads& loads, const PlanKeysOptions& options) {
  if (!options.chunk.empty()) return control::parse_size(options.chunk, "--chunk");
  std::size_t executors = 0;
  for (const control::hub::HubPath& path : loads.paths) executors += path.lcores.size();
  return control::hub::default_chunk_bytes(loads.keys, executors);
}

KeyLoads load_by(const control::Plan& plan, std::vector<control::Lcore> lcores,
                 const PlanKeysOptions& options) {
  const std::vector<int> lcore_nodes =
      parse_nodes(options.lcore_nodes, lcores.size(), "--lcore-nodes", "lcores");
  for (std::size_t i = 0; i < lcores.size(); ++i) lcores[i].numa_node = lcore_nodes[i];
  const std::vector<int> port_nodes =
      parse_nodes(options.port_nodes, plan.space().most_ports(), "--port-nodes", "ports");
  KeyLoads loads{.plan = plan, .lcores = std::move(lcores), .keys = read_keys_file(options.file)};
  loads.paths = control::hub::hub_paths(plan, loads.lcores, port_nodes);
  loads.chunk_bytes = chunk_bytes_of(loads, options);
  loads.chunks = control::hub::cut_into_chunks(loads.keys, loads.chunk_bytes, "--chunk");
  const auto bindings = control::hub::bind_chunks(loads.chunks, loads.paths);
  loads.loads = control::hub::hub_loads(loads.chunks, bindings, loads.paths, loads.lcores.size());
  loads.ports = control::hub::port_bytes(plan, loads.paths, loads.loads.paths);
  for (const HubLoad& load : loads.loads.paths) {
    loads.all.chunks += load.chunks;
    loads.all.bytes += load.bytes;
  }
  return loads;
}

// A number below 0 is none.
Cell node_cell(int node) { return node < 0 ? cell::none() : cell::plain(node); }

Cell fullness(const HubLoad& load, double fair) {
  return cell::plain(static_cast<double>(load.bytes) / fair, "{:.4f}");
}

void add_paths(Report& report, const KeyLoads& loads) {
  std::vector<ReportColumn> columns = {{"path", "path"},
                                       {"thread", "thread"},
                                       {"first port", "port"},
                                       {"node", "node"},
                                       {"chunks", "chunks"},
                                       {"bytes", "bytes"},
                                       {"of fair share", "of_fair_share"}};
  if (loads.has_roots()) columns.push_back({"root", "root"});
  ReportTable& table = report.table("paths", std::move(columns));
  std::vector<std::size_t> by_root(loads.paths.size());
  std::iota(by_root.begin(), by_root.end(), std::size_t{0});
  std::ranges::stable_sort(by_root, {}, [&](std::size_t p) { return loads.paths[p].root; });
  for (const std::size_t p : by_root) {
    const auto& path = loads.paths[p];
    const HubLoad& load = loads.loads.paths[p];
    std::vector<Cell> cells = {cell::plain(p),
                               cell::plain(path.thread),
                               path.port ? cell::plain(*path.port) : cell::none(),
                               node_cell(path.node),
                               cell::count(load.chunks),
                               cell::count(load.bytes),
                               fullness(load, loads.fair_path(p))};
    if (loads.has_roots()) cells.emplace_back(loads.root_text(path.root.value()));
    table.add(cells);
  }
  report.line("");
  if (!loads.has_roots()) return;
  const std::string root =
      loads.root_text(control::hub::busiest_root(loads.paths, loads.loads.paths).value());
  report.fact("busiest_root", root);
  report.line(fmt::format("of {}, the busiest root:\n", root));
}

void add_ports(Report& report, const KeyLoads& loads) {
  if (!loads.ports) {
    report.fact("ports", nullptr);
    report.line("ports: not counted, as a step of the plan uses several");
    return;
  }
  ReportTable& table =
      report.table("ports", {{"port", "port"}, {"bytes in of a push", "push_bytes"}});
  for (std::size_t port = 0; port < loads.ports->size(); ++port) {
    table.add({cell::plain(port), cell::bytes((*loads.ports)[port])});
  }
}

void add_nodes(Report& report, const KeyLoads& loads) {
  const auto nodes = loads.nodes();
  if (!nodes.empty()) report.line("");
  ReportTable& table =
      report.table("nodes", {{"node", "node"}, {"chunks", "chunks"}, {"bytes", "bytes"}});
  for (const auto& [node, load] : nodes) {
    table.add({cell::plain(node), cell::count(load.chunks), cell::count(load.bytes)});
  }
}

void add_lcores(Report& report, const KeyLoads& loads) {
  report.line("");
  ReportTable& table = report.table("lcores", {{"lcore", "lcore"},
                                               {"queue", "queue"},
                                               {"node", "node"},
                                               {"paths", "paths"},
                                               {"chunks", "chunks"},
                                               {"bytes", "bytes"},
                                               {"of fair share", "of_fair_share"}});
  for (unsigned i = 0; i < loads.lcores.size(); ++i) {
    const HubLoad& load = loads.loads.lcores[i];
    const std::vector<unsigned> paths = loads.paths_of(i);
    table.add({cell::plain(loads.lcores[i].id), cell::plain(i),
               node_cell(loads.lcores[i].numa_node),
               Cell(fmt::format("{}", fmt::join(paths, ",")), paths), cell::count(load.chunks),
               cell::count(load.bytes), fullness(load, loads.fair_lcore())});
  }
}

void add_optimizer(Report& report, const KeyLoads& loads, const std::string& optimizer) {
  const auto settings = control::parse_key_optimizers(optimizer, loads.keys, "--optimizer").of_hub;
  const std::string text = control::optimizer_text(settings);
  const std::uint64_t bytes = control::hub::optimizer_bytes(loads.keys, settings);
  const double share = control::hub::greatest_share(loads.plan);
  report.fact("optimizer",
              {{"settings", text}, {"memory_bytes", bytes}, {"greatest_share", share}});
  report.line(fmt::format("\n{}: weights and state of {}, at most {} on each owner", text,
                          human_bytes(static_cast<double>(bytes)),
                          human_bytes(static_cast<double>(bytes) * share)));
}

}  // namespace

void add_plan_keys(CLI::App& command, PlanKeysOptions& options) {
  CLI::Option* keys =
      add_text(&command, "--keys", options.file,
               "Show the load of every path, port and lcore with the keys of this file: "
               "JSON, as below");
  for (const char* other : {"--server", "--trainers", "--verify"})
    keys->excludes(command.get_option(other));
  const auto add = [&](const char* name, std::string& value, const char* help) {
    return add_text(&command, name, value, help)->needs(keys);
  };
  add("--chunk", options.chunk,
      "Bytes of a chunk of a key, a multiple of 64; by default from 32Ki to 1Mi, by the length of "
      "all");
  add("--port-nodes", options.port_nodes, "The NUMA node of each port of a server: 0,1");
  add("--lcore-nodes", options.lcore_nodes, "The NUMA node of each core of --lcores: 0,0,1,1");
  add("--optimizer", options.optimizer,
      "Also show its memory: nesterov:lr=0.1,momentum=0.9 (sgd, momentum, nesterov, adam, adamw)");
}

Report keys_report(const control::Plan& plan, std::vector<control::Lcore> lcores,
                   const PlanKeysOptions& options) {
  const KeyLoads loads = load_by(plan, std::move(lcores), options);
  Report report;
  report.line(
      fmt::format("{} keys, {} in {} chunks of {}, by {} on {}\n", grouped(loads.keys.size()),
                  human_bytes(static_cast<double>(loads.all.bytes)), grouped(loads.all.chunks),
                  options.chunk.empty() ? grouped(loads.chunk_bytes) + " bytes" : options.chunk,
                  plan.algorithm(), plan.topology().spec()));
  report.fact("topology", plan.topology().spec());
  report.fact("algorithm", plan.algorithm());
  report.fact("servers", plan.ranks());
  report.fact("keys", loads.keys.size());
  report.fact("bytes", loads.all.bytes);
  report.fact("chunk_bytes", loads.chunk_bytes);
  report.fact("chunks", loads.all.chunks);
  add_paths(report, loads);
  add_ports(report, loads);
  add_nodes(report, loads);
  add_lcores(report, loads);
  if (!options.optimizer.empty()) add_optimizer(report, loads, options.optimizer);
  return report;
}

}  // namespace gradcube::cli
