// The way of a message between two servers that need not be neighbours: one hop for each digit in
// which they differ, over a switch of that digit's level (BML, section 3.1). Where cables join the
// servers, a hop goes to the next digit or to the one before, and a digit takes as many hops as it
// is far.
//
// A plain value; nothing allocates but a search around absent servers. Functions trust their
// servers to be in the space.
#ifndef GRADCUBE_BCUBE_FORWARDING_ROUTE_H_
#define GRADCUBE_BCUBE_FORWARDING_ROUTE_H_

#include <array>
#include <cstdint>
#include <functional>

#include "bcube_forwarding/address.h"

namespace gradcube::bcube {

// To the server that has `digit` at `level`, and is otherwise the one before. Where servers have
// several ports on a switch, the digit names the rail, too (address.h).
struct Hop {
  std::uint8_t level = 0;
  std::uint8_t digit = 0;

  bool operator==(const Hop&) const = default;
};

constexpr Hop hop_to(unsigned level, unsigned digit) {
  return {static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)};
}

class Route {
 public:
  // kMaxLevels hops at most.
  void append(Hop hop) { hops_[size_++] = hop; }

  unsigned size() const { return size_; }
  const Hop& operator[](unsigned index) const { return hops_[index]; }
  const Hop* begin() const { return hops_.data(); }
  const Hop* end() const { return hops_.data() + size_; }

  bool operator==(const Route&) const = default;

 private:
  std::array<Hop, kMaxLevels> hops_{};
  unsigned size_ = 0;
};

// The most hops that a frame may take: what the farthest servers are apart, and two more for a way
// around a failure; kMaxLevels at most, and where servers are absent, as ways around them may be
// that long. Under one switch all servers are neighbours and there is no way around; in one ring it
// is the other way round.
unsigned most_hops(const AddressSpace& space);

// The hops of a shortest way between two addresses, and between the two that are farthest apart,
// as if no server was absent.
unsigned distance(const AddressSpace& space, ServerId from, ServerId to);
unsigned diameter(const AddressSpace& space);

// Whether the short way round a ring is to ascending digits. Where both ways are as long, half of
// the servers take the one and half the other, so that the links share the load.
bool goes_forward(const AddressSpace& space, unsigned level, unsigned from, unsigned to);

// By how much greater each digit of `to` is, modulo the level's radix: the server with these
// digits.
ServerId difference(const AddressSpace& space, ServerId from, ServerId to);

// A shortest route: sets one differing digit after the other, upwards from one of them and round;
// on cables from the lowest one. Empty if the servers are the same, or farther apart than a route
// can be; one hop if they are neighbours.
//
// Under switches, where it begins follows from the difference of the servers alone, and spreads: so
// where each server sends to each, every port sends and receives as much as any other of its level,
// and about as many of the routes begin at each level, and end there.
//
// Where a relay on it would be absent, the next of the orders of levels is taken whose relays are
// all there, else a shortest route among all; empty if there is none of kMaxLevels hops.
Route shortest_route(const AddressSpace& space, ServerId from, ServerId to);

// Whether a frame gets from this server to the neighbour that the hop leads to. An empty one means
// that every hop works.
using HopFilter = std::function<bool(ServerId from, Hop hop)>;

// A shortest route between two different servers over servers that are there and hops that work, by
// a breadth-first search; empty if none has kMaxLevels hops at most. Allocates.
Route searched_route(const AddressSpace& space, ServerId from, ServerId to,
                     const HopFilter& works = {});

// The hop between two servers of one switch over a rail: the rail modulo as many as join them.
Hop hop_over(const AddressSpace& space, ServerId from, ServerId to, unsigned rail);

// Appends hops that set one digit: along a ring, to ascending digits if `forward`.
void append_hops(Route& route, const AddressSpace& space, unsigned level, unsigned digit,
                 unsigned end, bool forward);

// Calls visit(at, hop, next) for the hops of a route from `from`, each from one address to the
// next, until one is false. Whether none was.
template <typename Visit>
bool walk(const AddressSpace& space, ServerId from, const Route& route, const Visit& visit) {
  for (const Hop& hop : route) {
    const ServerId next = space.with_digit(from, hop.level, hop.digit);
    if (!visit(from, hop, next)) return false;
    from = next;
  }
  return true;
}

// Whether all servers that a route from `from` passes are there.
bool passes_servers_alone(const AddressSpace& space, ServerId from, const Route& route);

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_ROUTE_H_
