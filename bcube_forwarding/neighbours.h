// A server's 1-hop neighbours: the servers under the switch of each of its levels, or at the other
// end of its cables, their port and their link addresses (BML, section 3.1).
//
// Each engine makes its table at start; the table allocates only then. It has one row per (level,
// digit) of a hop that leads to a server: over several rails one for each. A look-up is O(1). A
// relay needs no more: a hop on the wire is a byte of level and a byte of digit, and find() checks
// both, so it accepts bytes from a frame unchecked.
//
// Threads: it never changes. The engines of one server have a table each.
#ifndef GRADCUBE_BCUBE_FORWARDING_NEIGHBOURS_H_
#define GRADCUBE_BCUBE_FORWARDING_NEIGHBOURS_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bcube_forwarding/address.h"

namespace gradcube::bcube {

struct LinkAddress {
  std::array<std::uint8_t, 6> mac{};
  std::uint32_t ip = 0;  // IPv4, in host byte order

  bool operator==(const LinkAddress&) const = default;
};

// How many servers have addresses for all of their ports. A cluster that runs has fewer.
inline constexpr std::uint32_t kMaxAddressedServers = 8192;

// The addresses of servers' ports, which need no discovery on any fabric. The port of `server`
// with this number has the MAC 02:47:<port>:<server, 24 bits> (locally administered, unicast) and
// the IPv4 address 198.18.0.0 + port * kMaxAddressedServers + server. That is of 198.18.0.0/15,
// which is set aside for measuring network devices (RFC 2544), so that no host has it for other
// work. IPv4 addresses stand in frames alone; no interface is given one. Requires a server below
// kMaxAddressedServers.
LinkAddress embedded_link_address(unsigned port, ServerId server);

// Of whoever hears it: Ethernet's and IPv4's.
inline constexpr LinkAddress kBroadcastAddress{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0xffffffff};

// Whether two servers of the space are 1-hop neighbours: whether they differ in exactly one digit,
// and a hop joins those.
bool are_neighbours(const AddressSpace& space, ServerId one, ServerId other);

// Of these servers, those that come next to this one in its lines: all others of a switch, and on a
// torus the nearest in each direction of each ring. If one comes next to another, so does the other
// to the one. Ascending, without this server. Allocates.
std::vector<ServerId> next_in_lines(const AddressSpace& space, ServerId self,
                                    const std::vector<ServerId>& servers);

// The same, and where the servers are no grid, so that lines need not join all of them, also those
// with the next greater and the next smaller number, in a ring: over who comes next to whom each
// reaches each.
std::vector<ServerId> next_to(const AddressSpace& space, ServerId self,
                              const std::vector<ServerId>& servers);

// Whether these servers, each named once, are a grid: every combination of digits that they have at
// the levels is one of them. All servers of a whole space are, and so are those of a switch.
bool are_grid(const AddressSpace& space, std::span<const ServerId> servers);

struct Neighbour {
  ServerId server = 0;
  unsigned level = 0;
  unsigned digit = 0;   // of the hop to it at `level`, where alone it differs from us
  unsigned port = 0;    // our port that leads to it
  LinkAddress address;  // of its port
  LinkAddress own;      // of ours
};

class NeighbourTable {
 public:
  // Throws std::invalid_argument if `self` is not in the space, or the space has more than
  // kMaxAddressedServers addresses.
  NeighbourTable(const AddressSpace& space, ServerId self);

  ServerId self() const { return self_; }
  const AddressSpace& space() const { return space_; }
  unsigned own_digit(unsigned level) const { return own_digits_[level]; }

  // The neighbour with `digit` at `level`; null if there is none, whatever the values are.
  const Neighbour* find(unsigned level, unsigned digit) const;

  // All neighbours behind a port, by ascending digit of the hop.
  std::span<const Neighbour> behind(unsigned port) const {
    return {rows_.data() + first_[port], first_[port + 1] - first_[port]};
  }

  // Whether `server` (any number) is behind our port (any number).
  bool is_behind(unsigned port, ServerId server) const;

 private:
  static constexpr std::uint32_t kNoRow = UINT32_MAX;

  AddressSpace space_;
  ServerId self_;
  std::array<unsigned, kMaxLevels> own_digits_{};
  std::vector<Neighbour> rows_;       // by port
  std::vector<std::uint32_t> first_;  // [port]: its first row; then the number of rows
  // [level][digit of the hop]: of rows_, or kNoRow
  std::array<std::vector<std::uint32_t>, kMaxLevels> row_of_;
};

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_NEIGHBOURS_H_
