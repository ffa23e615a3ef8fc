#include "control/hub/binding.h"

#include <algorithm>
#include <map>

#include "bcube_forwarding/path_set.h"
#include "control/base/errors.h"
#include "control/hub/partition.h"

namespace gradcube::control::hub {
namespace {

int node_of(std::optional<unsigned> port, std::span<const int> port_nodes) {
  return port && *port < port_nodes.size() ? port_nodes[*port] : -1;
}

bool near(int node, int other) { return node < 0 || other < 0 || node == other; }

// The port that a thread uses first, of the root where it has several on the switch; none on
// cables, where a step uses two.
std::optional<unsigned> first_port(const Plan& plan, unsigned thread) {
  const std::optional<unsigned> level = plan.level(thread, 0);
  if (!level || plan.space().cabled()) return std::nullopt;
  return plan.topology().dimensions()[*level].port + plan.thread(thread).rail;
}

bool is_parameter_server(const Plan& plan) {
  return plan.steps() == 1 && plan.step(0, 0).is_root();
}

// The rank that sums all of a thread's, in the parameter server's plan.
std::optional<Rank> root_of(const Plan& plan, unsigned thread) {
  if (!is_parameter_server(plan)) return std::nullopt;
  return plan.step(thread, 0).with_digit(0, 0);
}

std::vector<HubPath> paths_of(const Plan& plan, std::span<const int> port_nodes) {
  std::vector<HubPath> paths;
  for (unsigned t = 0; t < plan.threads(); ++t) {
    const auto port = first_port(plan, t);
    paths.push_back({.thread = t,
                     .port = port,
                     .node = node_of(port, port_nodes),
                     .weight = plan.thread(t).weight,
                     .lcores = {},
                     .root = root_of(plan, t)});
  }
  return paths;
}

// The lcore that serves the fewest paths, of those near the node if there is one.
unsigned idlest(std::span<const Lcore> lcores, std::span<const unsigned> served, int node) {
  std::optional<unsigned> chosen;
  for (const bool local : {true, false}) {
    for (unsigned i = 0; i < lcores.size(); ++i) {
      if (local && !near(lcores[i].numa_node, node)) continue;
      if (!chosen || served[i] < served[*chosen]) chosen = i;
    }
    if (chosen) break;
  }
  return *chosen;
}

void deal(std::span<HubPath> paths, std::span<const Lcore> lcores) {
  std::vector<unsigned> served(lcores.size(), 0);
  for (HubPath& path : paths) {
    const unsigned lcore = idlest(lcores, served, path.node);
    ++served[lcore];
    path.lcores.push_back(lcore);
  }
  // What is left goes to the path on its node with the fewest lcores.
  for (unsigned i = 0; i < lcores.size(); ++i) {
    if (served[i] > 0) continue;
    HubPath* poorest = nullptr;
    for (HubPath& path : paths) {
      if (!near(lcores[i].numa_node, path.node)) continue;
      if (poorest == nullptr || path.lcores.size() < poorest->lcores.size()) poorest = &path;
    }
    if (poorest != nullptr) poorest->lcores.push_back(i);
  }
  for (HubPath& path : paths) std::sort(path.lcores.begin(), path.lcores.end());
}

}  // namespace

std::vector<HubPath> hub_paths(const Plan& plan, std::span<const Lcore> lcores,
                               std::span<const int> port_nodes) {
  if (lcores.empty()) throw SetupError("there is no lcore for the hub: give at least one");
  std::vector<HubPath> paths = paths_of(plan, port_nodes);
  for (std::size_t begin = 0, end = 0; begin < paths.size(); begin = end) {
    while (end < paths.size() && paths[end].root == paths[begin].root) ++end;
    deal(std::span(paths).subspan(begin, end - begin), lcores);
  }
  return paths;
}

std::vector<ChunkBinding> bind_chunks(std::span<const Chunk> chunks,
                                      std::span<const HubPath> paths) {
  std::vector<std::uint64_t> sizes;
  for (const Chunk& chunk : chunks) sizes.push_back(chunk.bytes);
  std::vector<unsigned> weights;
  for (const HubPath& path : paths) weights.push_back(path.weight);
  const std::vector<unsigned> path_of = divide_longest_first(sizes, weights);
  std::vector<ChunkBinding> bindings(chunks.size());
  for (unsigned p = 0; p < paths.size(); ++p) {
    std::vector<std::size_t> own;
    std::vector<std::uint64_t> own_sizes;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (path_of[c] != p) continue;
      own.push_back(c);
      own_sizes.push_back(sizes[c]);
    }
    const std::vector<unsigned> alike(paths[p].lcores.size(), 1);
    const std::vector<unsigned> lcore_of = divide_longest_first(own_sizes, alike);
    for (std::size_t i = 0; i < own.size(); ++i) {
      bindings[own[i]] = {p, paths[p].lcores[lcore_of[i]]};
    }
  }
  return bindings;
}

std::optional<Rank> busiest_root(std::span<const HubPath> paths, std::span<const HubLoad> loads) {
  std::map<std::optional<Rank>, std::uint64_t> bytes;
  for (std::size_t p = 0; p < paths.size(); ++p) bytes[paths[p].root] += loads[p].bytes;
  const auto its_bytes = [](const auto& root) { return root.second; };
  return std::ranges::max_element(bytes, {}, its_bytes)->first;
}

HubLoads hub_loads(std::span<const Chunk> chunks, std::span<const ChunkBinding> bindings,
                   std::span<const HubPath> paths, std::size_t lcores) {
  HubLoads loads = {std::vector<HubLoad>(paths.size()), std::vector<HubLoad>(lcores)};
  const auto add = [](HubLoad& load, const Chunk& chunk) {
    ++load.chunks;
    load.bytes += chunk.bytes;
  };
  for (std::size_t c = 0; c < chunks.size(); ++c) add(loads.paths[bindings[c].path], chunks[c]);
  const std::optional<Rank> busiest = busiest_root(paths, loads.paths);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    if (paths[bindings[c].path].root != busiest) continue;
    add(loads.lcores[bindings[c].lcore], chunks[c]);
  }
  return loads;
}

namespace {

// By the routes of the contributions, which may lead over relays.
std::vector<double> root_port_bytes(const Plan& plan, std::span<const HubPath> paths,
                                    std::span<const HubLoad> loads) {
  const Rank root = busiest_root(paths, loads).value();
  std::vector<double> bytes(plan.space().ports(plan.placement().server(root)));
  for (std::size_t p = 0; p < paths.size(); ++p) {
    if (paths[p].root != root) continue;
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      if (rank == root || !plan.step(paths[p].thread, 0).takes_part(rank)) continue;
      const Route route = plan.route(rank, root, paths[p].thread);
      bytes[bcube::port_at_end(plan.space(), plan.placement().server(rank), route)] +=
          static_cast<double>(loads[p].bytes);
    }
  }
  return bytes;
}

}  // namespace

std::optional<std::vector<double>> port_bytes(const Plan& plan, std::span<const HubPath> paths,
                                              std::span<const HubLoad> loads) {
  if (is_parameter_server(plan)) return root_port_bytes(plan, paths, loads);
  std::vector<double> bytes(plan.topology().ports(), 0);
  for (std::size_t p = 0; p < paths.size(); ++p) {
    auto left = static_cast<double>(loads[p].bytes);  // what a server works on in the step
    for (unsigned w = 0; w < plan.steps(paths[p].thread); ++w) {
      const PlanStep& step = plan.step(paths[p].thread, w);
      const auto level = plan.level(paths[p].thread, w);
      if (!level || plan.space().cabled()) return std::nullopt;
      const unsigned port = plan.topology().dimensions()[*level].port;
      left /= step.parts();
      bytes[port] += left * (step.radix - 1);
    }
  }
  return bytes;
}

std::uint64_t optimizer_bytes(std::span<const HubKey> keys,
                              const aggregation::OptimizerSettings& settings) {
  std::uint64_t bytes = 0;
  for (const HubKey& key : keys) {
    bytes += key.elements * sizeof(float) * (1 + aggregation::optimizer_states(settings.rule));
    if (key.type != aggregation::DataType::float32) bytes += key.bytes();
  }
  return bytes;
}

double greatest_share(const Plan& plan) {
  double most = 0;  // of all threads' weights
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    double owned = 0;
    for (unsigned t = 0; t < plan.threads(); ++t) {
      if (plan.owns(rank, t)) owned += static_cast<double>(plan.thread(t).weight) / plan.pieces(t);
    }
    most = std::max(most, owned);
  }
  return most / plan.thread_part(0).of;
}

}  // namespace gradcube::control::hub
