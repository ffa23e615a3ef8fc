// The links of a topology by number: each direction of a server's port and, of a tree, of a
// switch's uplink. Who counts what a plan's messages bring to links goes by these numbers.
//
// A message passes, at each hop, the port that it leaves by and the port that it arrives at, and
// between them, on a tree, the uplinks up to the lowest switch that has both servers below it.
//
// An immutable value. The functions trust their arguments to be in range.
#ifndef GRADCUBE_CONTROL_PLAN_BASE_TOPOLOGY_LINKS_H_
#define GRADCUBE_CONTROL_PLAN_BASE_TOPOLOGY_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bcube_forwarding/route.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

class TopologyLinks {
 public:
  using Number = std::size_t;

  explicit TopologyLinks(const Topology& topology);

  std::size_t count() const { return first_.back(); }
  unsigned level(Number link) const;
  // Whether several servers send over it.
  bool is_uplink(Number link) const { return link >= first_.front(); }
  bool is_port_of(Number link, ServerId server) const {
    return link / 2 / topology_.space().most_ports() == server;  // uplinks lie behind all servers
  }
  // How many times as long a byte takes on it as on most links of its level.
  double slowness(Number link) const;
  std::string text(Number link) const;  // "[2,1]'s port 0", "the uplink of [4] to [7]"

  // Calls visit(Number) for every link that a message on this route passes.
  template <typename Visit>
  void for_each(ServerId from, const bcube::Route& route, Visit&& visit) const {
    const AddressSpace& space = topology_.space();
    ServerId at = from;
    for (const bcube::Hop& hop : route) {
      const ServerId next = space.with_digit(at, hop.level, hop.digit);
      visit(of_port(at, space.port_of(at, hop.level, hop.digit), kOut));
      const unsigned top = topology_.link_level(at, next, hop.level);
      for (unsigned level = hop.level + 1; level <= top; ++level) {
        visit(first_[level - 1] + 2 * group(at, level) + kOut);
        visit(first_[level - 1] + 2 * group(next, level) + kIn);
      }
      visit(of_port(
          next, space.port_of(next, hop.level, space.digit_back(at, hop.level, hop.digit)), kIn));
      at = next;
    }
  }

 private:
  static constexpr unsigned kOut = 0;
  static constexpr unsigned kIn = 1;

  Number of_port(ServerId server, unsigned port, unsigned direction) const {
    return (std::size_t{server} * topology_.space().most_ports() + port) * 2 + direction;
  }
  // That has this server and shares an uplink of this level, from 1.
  std::size_t group(ServerId server, unsigned level) const {
    return server / topology_.sharers(level);
  }

  Topology topology_;
  // [level - 1]: the uplinks of the level. Ports come before them; then the number of all links.
  std::vector<Number> first_;
};

// What a message has that goes to a neighbour over this level of addresses, and is alone there, in
// bits per second; 0: not limited.
std::uint64_t hop_bps(const Topology& topology, ServerId from, ServerId to, unsigned level);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_TOPOLOGY_LINKS_H_
