// A topology is a list of dimensions; dimension i is level i of a server's address.
//
//   bcube:n,k   BCube(n,k): k dimensions of radix n, dimension i on port i (BML, section 3.1)
//   bcube:4x3x2 a generalized BCube: a dimension for each of the listed radices, the highest level
//               first, as in an address; dimension i on port i. bcube:3x3 is bcube:3,2
//   star:N      N servers around one switch: one dimension of radix N on port 0; it is bcube:N,1
//   torus:n,h   a torus: in each of h dimensions, rings of n servers, which cables join (HiPS,
//               section 4.2). Port 2i leads to the next digit of dimension i, port 2i+1 to the one
//               before. n is 3 or more: a ring of two would have two cables between the same two
//   tree:AxB    a tree of switches (BlueConnect, Figure 1): A servers under each switch of the
//               lowest level, B of those switches under each of the next, and so on: tree:4x4x2. A
//               server has one port and reaches each other in one hop, as in a star, and has a
//               star's address. But those under a switch share its UPLINK, which leads to the next
//               level. With uplinks as fast as all below them it is the papers' Fat-Tree
//
// The dimensions of a tree are its levels, all on port 0: what is joined by a switch of level 0,
// the servers' own links, and from level 1 on by uplinks. Of all other topologies the levels of
// links are those of addresses. grid_space() has a digit for each dimension, with the same numbers
// of servers; space() is what a frame's hops go by.
//
// A topology may be partial: some of its addresses have no server (address.h). Its spec is that of
// the whole, and absent_text() says who is absent.
//
// A Topology is an immutable value. Bounds: radix 2..256 (a digit is a byte on the wire), 1..7
// levels (a path through relays has at most 8 hops), at most 65536 servers (a server's number has
// 16 bits on the wire), and 256 of a tree (a hop names its server by one digit).
#ifndef GRADCUBE_CONTROL_PLAN_BASE_TOPOLOGY_H_
#define GRADCUBE_CONTROL_PLAN_BASE_TOPOLOGY_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bcube_forwarding/address.h"

namespace gradcube::control {

using bcube::AddressSpace;
using bcube::kMaxLevels;
using bcube::ServerId;

// One less than an address has room for: a path through relays has a hop more than there are
// levels, and a frame lists as many hops as an address has levels.
inline constexpr unsigned kMaxDimensions = kMaxLevels - 1;

// Of IP packets, in bytes: the least is what every link carries that carries IPv6.
inline constexpr unsigned kMinMtu = 1280;
inline constexpr unsigned kMaxMtu = 9000;

// What joins the servers that differ only in a dimension's digit.
enum class Link {
  switched,  // a switch: each reaches each
  adjacent,  // a ring of cables: each reaches the two beside it
  uplink,    // a switch, which the switches of the level below reach by their uplinks
};

struct Dimension {
  unsigned radix = 0;
  unsigned port = 0;           // the (first) port that the dimension uses
  std::uint64_t rate_bps = 0;  // of the port or the uplink, in bits per second; 0: not limited
  Link link = Link::switched;

  unsigned ports() const { return link == Link::adjacent ? 2 : link == Link::switched ? 1 : 0; }
  bool operator==(const Dimension&) const = default;
};

// That a server has on its switch, and what each of its ports has, in bits per second.
struct PortGroup {
  ServerId server = 0;
  unsigned ports = 1;
  std::uint64_t rate_bps = 0;

  bool operator==(const PortGroup&) const = default;
};

// Of a topology with absent servers, because routes around them are searched.
inline constexpr std::uint32_t kMaxPartialAddresses = 256;

class Topology {
 public:
  // dimensions[i] is level i. Throws std::invalid_argument with a message when a bound does not
  // hold.
  Topology(std::string kind, std::vector<Dimension> dimensions);

  const std::string& kind() const { return kind_; }  // "bcube", "star", "torus" or "tree"
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  const AddressSpace& space() const { return space_; }
  const AddressSpace& grid_space() const { return grid_; }
  std::uint32_t servers() const { return space_.servers(); }  // without the absent ones
  unsigned levels() const { return space_.levels(); }         // of addresses
  unsigned link_levels() const { return static_cast<unsigned>(dimensions_.size()); }
  unsigned ports() const;  // of a server, at least; space() knows who has more
  bool uniform() const;    // all radices are equal
  bool is_tree() const { return dimensions_.back().link == Link::uplink; }
  // How many servers share a link of the level: 1, but below an uplink of a tree.
  std::uint32_t sharers(unsigned level) const;
  // What each of them has of it if all send at once; 0: not limited.
  double share_bps(unsigned level) const {
    return static_cast<double>(dimensions_[level].rate_bps) / sharers(level);
  }
  // The highest level of the links that a hop over a level of addresses passes.
  unsigned link_level(ServerId from, ServerId to, unsigned level) const {
    while (is_tree() && level + 1 < link_levels() &&
           from / sharers(level + 1) != to / sharers(level + 1)) {
      ++level;
    }
    return level;
  }
  // A port of the server to the level; 0: not limited.
  std::uint64_t port_bps(ServerId server, unsigned level) const {
    const bool own = server < own_rates_.size() && own_rates_[server] != 0 && sharers(level) == 1;
    return own ? own_rates_[server] : dimensions_[level].rate_bps;
  }
  // Whether some links are limited.
  bool has_rates() const;
  // Whether some servers have other ports than most.
  bool has_own_ports() const { return !own_rates_.empty(); }
  // What a message has that passes links up to this level, and is alone there; 0: not limited.
  std::uint64_t path_bps(unsigned link_level) const;

  // "bcube:3,2", "bcube:4x3x2": what parse_topology reads.
  std::string spec() const;

  // The same topology where these addresses have no server, and all others have one. Throws
  // std::invalid_argument if one is no address, the rest are not all joined over servers that are
  // there, or some are absent of more than kMaxPartialAddresses.
  Topology without(const std::vector<ServerId>& absent) const;
  Topology whole() const { return without({}); }
  // "3,1 3,2": what parse_absent() reads. Empty if none is absent.
  std::string absent_text() const;

  // The same topology with these rates on its dimensions but memory, by level; as many as there are
  // dimensions. 0: not limited.
  Topology with_rates(const std::vector<std::uint64_t>& rates_bps) const;

  // The same topology where these servers have ports of their own, and no others. Throws
  // std::invalid_argument for servers that there are not, and ports that it cannot have.
  Topology with_own_ports(const std::vector<PortGroup>& servers) const;

  // The same topology whose servers add up on so many lcores each; 1 or more.
  Topology with_lcores(unsigned lcores) const;
  unsigned lcores() const { return lcores_; }

  // The same topology whose links carry IP packets of so many bytes.
  Topology with_mtu(unsigned mtu) const;
  unsigned mtu() const { return mtu_; }

  bool operator==(const Topology&) const = default;

 private:
  std::string kind_;
  std::vector<Dimension> dimensions_;
  std::vector<std::uint64_t> own_rates_;  // by server, 0: its level's; empty: nobody has own ports
  unsigned lcores_ = 1;
  unsigned mtu_ = kMaxMtu;
  AddressSpace space_;
  AddressSpace grid_;
};

// What parse_topology() reads, for the help of options.
inline constexpr const char* kTopologyForms =
    "bcube:n,k, bcube:4x3x2, star:N, torus:n,h or tree:AxB";

// Reads "bcube:3,2", "bcube:4x3x2", "star:9", "torus:4,2", "tree:4x2". `where` begins the message
// of the UsageError: "--topology".
Topology parse_topology(std::string_view spec, std::string_view where);

// Takes the servers that parse_servers() reads, "3,1 3,2", out of the topology; empty text makes it
// whole. Throws a UsageError that begins with `where`.
Topology parse_absent(const Topology& topology, std::string_view text, std::string_view where);

// "13 servers, 3 absent", "1 server", "9 servers".
std::string servers_text(const Topology& topology);

// Reads a server's address, "2,1" or "[2,1]"; throws a UsageError.
ServerId parse_server(const Topology& topology, std::string_view text, std::string_view where);

// Reads addresses with spaces or semicolons between them, "3,1 3,2", or none; throws a UsageError.
std::vector<ServerId> parse_servers(const Topology& topology, std::string_view text,
                                    std::string_view where);
// "3,1 3,2": what parse_servers() reads.
std::string addresses_text(const AddressSpace& space, const std::vector<ServerId>& servers);

// {"spec":"bcube:3,2","kind":"bcube","n":3,"k":2,"servers":9}; a torus has "h" and no "k"; one that
// is not uniform has "radices", the highest level first, in the place of "n", and a tree always has
// them, the lowest level first, as its spec. One that is partial also has "absent", the addresses
// without a server.
nlohmann::ordered_json topology_json(const Topology& topology);

// An address as JSON has it: [v(k-1),...,v1,v0].
nlohmann::ordered_json address_json(const AddressSpace& space, ServerId server);
// [[2,1],[2,2]]
nlohmann::ordered_json addresses_json(const AddressSpace& space,
                                      const std::vector<ServerId>& servers);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_TOPOLOGY_H_
