#include "cli/plan/plan_keys.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "aggregation/optimizer_step.h"
#include "cli/text/json_fields.h"
#include "cli/text/keys_file.h"
#include "cli/text/option_checks.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/hub/binding.h"
#include "control/hub/chunks.h"
#include "control/hub/keys.h"
#include "control/hub/optimizer_settings.h"

namespace gradcube::cli {
namespace {

using control::UsageError;
using control::hub::HubLoad;
using nlohmann::ordered_json;

constexpr int kMostNodes = 1024;

// "0,0,1,1": one for each of `count`; all -1 where the option is not given.
std::vector<int> parse_nodes(const std::string& text, std::size_t count, const char* option,
                             const char* of) {
  std::vector<int> nodes;
  std::string_view rest = text;
  while (!text.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    nodes.push_back(static_cast<int>(control::parse_integer(item, option, 0, kMostNodes)));
    if (item.size() == rest.size()) break;
    rest.remove_prefix(item.size() + 1);
  }
  if (text.empty()) nodes.assign(count, -1);
  if (nodes.size() != count) {
    throw UsageError(fmt::format("{} {}: {} NUMA nodes for {} {}; expected one for each", option,
                                 control::quoted(text), nodes.size(), count, of));
  }
  return nodes;
}

// All that is shown.
struct Report {
  const control::Plan& plan;
  std::vector<control::Lcore> lcores;
  std::vector<control::hub::HubKey> keys;
  std::uint64_t chunk_bytes;
  std::vector<control::hub::Chunk> chunks;
  std::vector<control::hub::HubPath> paths;
  control::hub::HubLoads loads;
  std::optional<std::vector<double>> ports;
  HubLoad all;

  double fair_path(std::size_t path) const {
    double weights = 0;
    for (const auto& each : paths) weights += each.weight;
    return static_cast<double>(all.bytes) * paths[path].weight / weights;
  }
  double fair_lcore() const {
    return static_cast<double>(all.bytes) / static_cast<double>(lcores.size());
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
      if (std::find(own.begin(), own.end(), lcore) != own.end()) served.push_back(p);
    }
    return served;
  }
};

std::uint64_t chunk_bytes_of(const Report& report, const PlanKeysOptions& options) {
  if (!options.chunk.empty()) return control::parse_size(options.chunk, "--chunk");
  std::size_t executors = 0;
  for (const control::hub::HubPath& path : report.paths) executors += path.lcores.size();
  return control::hub::default_chunk_bytes(report.keys, executors);
}

Report make_report(const control::Plan& plan, std::vector<control::Lcore> lcores,
                   const PlanKeysOptions& options) {
  const std::vector<int> lcore_nodes =
      parse_nodes(options.lcore_nodes, lcores.size(), "--lcore-nodes", "lcores");
  for (std::size_t i = 0; i < lcores.size(); ++i) lcores[i].numa_node = lcore_nodes[i];
  const std::vector<int> port_nodes =
      parse_nodes(options.port_nodes, plan.topology().ports(), "--port-nodes", "ports");
  Report report{.plan = plan,
                .lcores = std::move(lcores),
                .keys = read_keys_file(options.file),
                .chunk_bytes = 0,
                .chunks = {},
                .paths = {},
                .loads = {},
                .ports = {},
                .all = {}};
  report.paths = control::hub::hub_paths(plan, report.lcores, port_nodes);
  report.chunk_bytes = chunk_bytes_of(report, options);
  report.chunks = control::hub::cut_into_chunks(report.keys, report.chunk_bytes, "--chunk");
  const auto bindings = control::hub::bind_chunks(report.chunks, report.paths);
  report.loads =
      control::hub::hub_loads(report.chunks, bindings, report.paths.size(), report.lcores.size());
  report.ports = control::hub::port_bytes(plan, report.paths, report.loads.paths);
  for (const HubLoad& load : report.loads.paths) {
    report.all.chunks += load.chunks;
    report.all.bytes += load.bytes;
  }
  return report;
}

ordered_json load_json(const HubLoad& load, double fair) {
  return {{"chunks", load.chunks},
          {"bytes", load.bytes},
          {"of_fair_share", static_cast<double>(load.bytes) / fair}};
}

ordered_json or_null(bool known, int value) {
  return known ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json paths_json(const Report& report) {
  ordered_json list = ordered_json::array();
  for (std::size_t p = 0; p < report.paths.size(); ++p) {
    const auto& path = report.paths[p];
    ordered_json row = {
        {"path", p},
        {"thread", path.thread},
        {"port", or_null(path.port.has_value(), static_cast<int>(path.port.value_or(0)))},
        {"node", or_null(path.node >= 0, path.node)}};
    row.update(load_json(report.loads.paths[p], report.fair_path(p)));
    list.push_back(std::move(row));
  }
  return list;
}

ordered_json lcores_json(const Report& report) {
  ordered_json list = ordered_json::array();
  for (unsigned i = 0; i < report.lcores.size(); ++i) {
    const int node = report.lcores[i].numa_node;
    ordered_json row = {{"lcore", report.lcores[i].id},
                        {"queue", i},
                        {"node", or_null(node >= 0, node)},
                        {"paths", report.paths_of(i)}};
    row.update(load_json(report.loads.lcores[i], report.fair_lcore()));
    list.push_back(std::move(row));
  }
  return list;
}

std::string report_json(const Report& report, const PlanKeysOptions& options) {
  ordered_json whole = {{"topology", report.plan.topology().spec()},
                        {"algorithm", report.plan.algorithm()},
                        {"servers", report.plan.ranks()},
                        {"keys", report.keys.size()},
                        {"bytes", report.all.bytes},
                        {"chunk_bytes", report.chunk_bytes},
                        {"chunks", report.all.chunks},
                        {"paths", paths_json(report)}};
  whole["ports"] = report.ports ? ordered_json::array() : ordered_json(nullptr);
  for (std::size_t port = 0; report.ports && port < report.ports->size(); ++port) {
    whole["ports"].push_back({{"port", port}, {"push_bytes", (*report.ports)[port]}});
  }
  whole["nodes"] = ordered_json::array();
  for (const auto& [node, load] : report.nodes()) {
    whole["nodes"].push_back({{"node", node}, {"chunks", load.chunks}, {"bytes", load.bytes}});
  }
  whole["lcores"] = lcores_json(report);
  if (!options.optimizer.empty()) {
    const auto settings = control::hub::parse_optimizer(options.optimizer, "--optimizer");
    whole["optimizer"] = {{"settings", control::hub::optimizer_text(settings)},
                          {"memory_bytes", control::hub::optimizer_bytes(report.keys, settings)},
                          {"owners", control::hub::owners(report.plan)}};
  }
  return whole.dump() + "\n";
}

std::string fullness(const HubLoad& load, double fair) {
  return fmt::format("{:.4f}", static_cast<double>(load.bytes) / fair);
}

std::string node_text(int node) { return node < 0 ? "-" : std::to_string(node); }

std::string paths_text(const Report& report) {
  TextTable table(
      {{"path"}, {"thread"}, {"first port"}, {"node"}, {"chunks"}, {"bytes"}, {"of fair share"}});
  for (std::size_t p = 0; p < report.paths.size(); ++p) {
    const auto& path = report.paths[p];
    const HubLoad& load = report.loads.paths[p];
    table.add_row({std::to_string(p), std::to_string(path.thread),
                   path.port ? std::to_string(*path.port) : "-", node_text(path.node),
                   grouped(load.chunks), grouped(load.bytes), fullness(load, report.fair_path(p))});
  }
  return table.text();
}

std::string ports_text(const Report& report) {
  if (!report.ports) return "ports: not counted, as a step of the plan uses several\n";
  TextTable table({{"port"}, {"bytes in of a push"}});
  for (std::size_t port = 0; port < report.ports->size(); ++port) {
    table.add_row({std::to_string(port), human_bytes((*report.ports)[port])});
  }
  return table.text();
}

std::string nodes_text(const Report& report) {
  TextTable table({{"node"}, {"chunks"}, {"bytes"}});
  for (const auto& [node, load] : report.nodes()) {
    table.add_row({std::to_string(node), grouped(load.chunks), grouped(load.bytes)});
  }
  return table.empty() ? "" : "\n" + table.text();
}

std::string lcores_text(const Report& report) {
  TextTable table(
      {{"lcore"}, {"queue"}, {"node"}, {"paths"}, {"chunks"}, {"bytes"}, {"of fair share"}});
  for (unsigned i = 0; i < report.lcores.size(); ++i) {
    const HubLoad& load = report.loads.lcores[i];
    table.add_row({std::to_string(report.lcores[i].id), std::to_string(i),
                   node_text(report.lcores[i].numa_node),
                   fmt::format("{}", fmt::join(report.paths_of(i), ",")), grouped(load.chunks),
                   grouped(load.bytes), fullness(load, report.fair_lcore())});
  }
  return table.text();
}

std::string report_text(const Report& report, const PlanKeysOptions& options) {
  std::string text =
      fmt::format("{} keys, {} in {} chunks of {}, by {} on {}\n\n", grouped(report.keys.size()),
                  human_bytes(static_cast<double>(report.all.bytes)), grouped(report.all.chunks),
                  options.chunk.empty() ? grouped(report.chunk_bytes) + " bytes" : options.chunk,
                  report.plan.algorithm(), report.plan.topology().spec());
  text += paths_text(report) + "\n" + ports_text(report) + nodes_text(report) + "\n" +
          lcores_text(report);
  if (options.optimizer.empty()) return text;
  const auto settings = control::hub::parse_optimizer(options.optimizer, "--optimizer");
  const std::uint64_t bytes = control::hub::optimizer_bytes(report.keys, settings);
  const std::uint32_t owners = control::hub::owners(report.plan);
  return text + fmt::format("\n{}: weights and state of {}, {} on each of {} owners\n",
                            control::hub::optimizer_text(settings),
                            human_bytes(static_cast<double>(bytes)),
                            human_bytes(static_cast<double>(bytes) / owners), owners);
}

}  // namespace

void add_plan_keys(CLI::App& command, PlanKeysOptions& options) {
  CLI::Option* keys =
      command
          .add_option("--keys", options.file,
                      "Show the load of every path, port and lcore with the keys of this file: "
                      "JSON, as below")
          ->check(not_empty());
  for (const char* other : {"--server", "--trainers", "--verify"})
    keys->excludes(command.get_option(other));
  const auto add = [&](const char* name, std::string& value, const char* help) {
    return command.add_option(name, value, help)->check(not_empty())->needs(keys);
  };
  add("--chunk", options.chunk,
      "Bytes of a chunk of a key, a multiple of 64; by default from 32Ki to 1Mi, by the length of "
      "all");
  add("--port-nodes", options.port_nodes, "The NUMA node of each port of a server: 0,1");
  add("--lcore-nodes", options.lcore_nodes, "The NUMA node of each core of --lcores: 0,0,1,1");
  add("--optimizer", options.optimizer,
      "Also show its memory: nesterov:lr=0.1,momentum=0.9 (sgd, momentum, nesterov, adam, adamw)");
}

std::string keys_report(const control::Plan& plan, std::vector<control::Lcore> lcores,
                        const PlanKeysOptions& options, bool as_json) {
  const Report report = make_report(plan, std::move(lcores), options);
  return as_json ? report_json(report, options) : report_text(report, options);
}

}  // namespace gradcube::cli
