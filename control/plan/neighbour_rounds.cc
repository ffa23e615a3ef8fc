#include "control/plan/neighbour_rounds.h"

#include <algorithm>
#include <cstddef>

#include "bcube_forwarding/route.h"
#include "control/plan/base/topology_links.h"

namespace gradcube::control {
namespace {

// The round in which the digits a < b of a switch meet. With n odd nobody is the last one, and who
// would meet it has a rest.
unsigned tournament_round(unsigned a, unsigned b, unsigned radix) {
  const unsigned rounds = radix % 2 == 0 ? radix - 1 : radix;
  return b == rounds ? 2 * a % rounds : (a + b) % rounds;
}

// The round of the cable from digit a to b in a ring. The one that closes an odd ring has its own.
unsigned ring_round(unsigned a, unsigned b, unsigned radix) {
  const bool closes = b == radix - 1 && a == 0 && radix > 2;
  if (closes) return radix % 2 == 0 ? 1 : 2;
  return a % 2;
}

bool are_joined(unsigned a, unsigned b, const Dimension& dimension) {
  switch (dimension.link) {
    case Link::switched:
      return true;
    case Link::adjacent:
      return b - a == 1 || b - a == dimension.radix - 1;
    case Link::uplink:
      break;
  }
  return false;
}

// Each pair in the first round in which nobody uses a link on its way.
std::vector<std::vector<NeighbourLink>> rounds_of_tree(const Topology& topology) {
  const TopologyLinks links(topology);
  const std::vector<ServerId> servers = topology.space().server_list();
  std::vector<std::vector<NeighbourLink>> rounds;
  std::vector<std::vector<bool>> used;  // [round][link]
  for (std::size_t i = 0; i < servers.size(); ++i) {
    for (std::size_t j = i + 1; j < servers.size(); ++j) {
      std::vector<TopologyLinks::Number> way;
      const auto add = [&](TopologyLinks::Number link) { way.push_back(link); };
      links.for_each(servers[i], bcube::shortest_route(topology.space(), servers[i], servers[j]),
                     add);
      links.for_each(servers[j], bcube::shortest_route(topology.space(), servers[j], servers[i]),
                     add);
      std::size_t round = 0;
      const auto busy = [&](TopologyLinks::Number link) { return used[round][link]; };
      while (round < rounds.size() && std::any_of(way.begin(), way.end(), busy)) ++round;
      if (round == rounds.size()) {
        rounds.emplace_back();
        used.emplace_back(links.count());
      }
      for (const TopologyLinks::Number link : way) used[round][link] = true;
      rounds[round].push_back({0, servers[i], servers[j]});
    }
  }
  return rounds;
}

}  // namespace

std::vector<std::vector<NeighbourLink>> neighbour_rounds(const Topology& topology) {
  if (topology.is_tree()) return rounds_of_tree(topology);
  std::vector<std::vector<NeighbourLink>> rounds;
  const AddressSpace& space = topology.space();
  for (unsigned level = 0; level < topology.levels(); ++level) {
    const Dimension& dimension = topology.dimensions()[level];
    const std::size_t before = rounds.size();
    for (const ServerId first : topology.space().server_list()) {
      const unsigned a = space.digit(first, level);
      for (unsigned b = a + 1; b < dimension.radix; ++b) {
        if (!are_joined(a, b, dimension)) continue;
        if (space.is_absent(space.with_digit(first, level, b))) continue;
        const unsigned round = dimension.link == Link::switched
                                   ? tournament_round(a, b, dimension.radix)
                                   : ring_round(a, b, dimension.radix);
        if (rounds.size() <= before + round) rounds.resize(before + round + 1);
        rounds[before + round].push_back({level, first, space.with_digit(first, level, b)});
      }
    }
  }
  return rounds;
}

}  // namespace gradcube::control
