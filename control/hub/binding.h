// Where the chunks of a hub are worked on: each is bound for its life to a path, a queue and an
// lcore (PHub, section 3.2.4), so that lcores never wait for each other.
//
// A path is a thread of the plan. The parameter server's plan has one for each root and each port
// that the root has on the switch; by that port the chunk comes in and goes out. A path has lcores
// of its own among the paths of the same root, which work on one server, or shares one if there are
// fewer lcores than these. An lcore has one queue on each port; the queue's number is the lcore's
// place in the list.
//
// Chunks are divided by LPT (partition.h) at each level: first among the paths, by the weights of
// the plan's threads, then within a path among its lcores. NUMA nodes get their share with their
// paths: a path's lcores are on the node of its first port as long as that node has any, and an
// lcore on a node without a port is idle.
#ifndef GRADCUBE_CONTROL_HUB_BINDING_H_
#define GRADCUBE_CONTROL_HUB_BINDING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "control/hub/chunks.h"
#include "control/plan/assignment.h"
#include "control/plan/base/plan.h"

namespace gradcube::control::hub {

struct HubPath {
  unsigned thread = 0;
  std::optional<unsigned> port;  // the first that it uses; none where a step uses several
  int node = -1;                 // of that port; -1: not known
  unsigned weight = 1;
  std::vector<unsigned> lcores;  // places in the list of lcores, ascending
  std::optional<Rank> root;      // in the parameter server's plan: who sums what is on it
};

// The paths of a plan, with lcores dealt to those of each root: to each path in turn one that has
// none yet, on its node if possible. port_nodes[p] is the NUMA node of a server's port p. Throws a
// SetupError if there is no lcore.
std::vector<HubPath> hub_paths(const Plan& plan, std::span<const Lcore> lcores,
                               std::span<const int> port_nodes);

struct ChunkBinding {
  unsigned path = 0;   // its number
  unsigned lcore = 0;  // its place in the list of lcores, which is also its queue
};

std::vector<ChunkBinding> bind_chunks(std::span<const Chunk> chunks,
                                      std::span<const HubPath> paths);

struct HubLoad {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;

  bool operator==(const HubLoad&) const = default;
};

// Of the paths' roots, the first one of those with most bytes.
std::optional<Rank> busiest_root(std::span<const HubPath> paths, std::span<const HubLoad> loads);

struct HubLoads {
  std::vector<HubLoad> paths;   // [path]
  std::vector<HubLoad> lcores;  // [place in the list]: of the busiest root, if there are roots
};

HubLoads hub_loads(std::span<const Chunk> chunks, std::span<const ChunkBinding> bindings,
                   std::span<const HubPath> paths, std::size_t lcores);

// What the busiest root receives by each port in a push of all gradients, in bytes; elsewhere all
// servers are alike. As much is sent by it when the weights go out. Nothing for other plans in
// which a step uses several ports.
std::optional<std::vector<double>> port_bytes(const Plan& plan, std::span<const HubPath> paths,
                                              std::span<const HubLoad> loads);

// What weights and optimizer state take in all: float32 weights and as many arrays of state as the
// rule has, and beside weights whose gradients have 16 bits these weights in 16 bits.
std::uint64_t optimizer_bytes(std::span<const HubKey> keys,
                              const aggregation::OptimizerSettings& settings);

// The part of all weights and state that the server has which has most of them.
double greatest_share(const Plan& plan);

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_BINDING_H_
