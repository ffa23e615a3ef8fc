// The parallel paths between two servers (BCube, section 3.3): one through each port of the first.
// No two of them share a switch, nor a server but the two ends. So a link, a switch or a server
// between the ends that fails breaks one of them at most.
//
// The path that leaves over a level at which the digits of the ends differ sets all differing
// digits in turn, downwards from that level and round (DCRouting). If the digits are equal there,
// the path first goes to another server of that switch, sets the differing digits from there, and
// its last hop takes the detour back (AltDCRouting). A path has h hops or h + 2, where h digits
// differ.
//
// On a torus it is the same with cables, two paths for each level. A direct path goes the short way
// round each ring. The path through the other port of a level at which the digits differ takes one
// hop the long way round first, sets the other digits from there, and then goes on the long way. So
// it alone is on that side of the ring between its ends. Of paths that would have more than
// kMaxLevels hops there is none.
//
// Where one switch joins all servers, and some have several ports on it, there is a path for each
// rail between the two: only their ports fail one by one.
//
// Pure functions. They allocate, so they are for set-up and control, not for the data path. They
// trust their servers and routes to be in the space.
#ifndef GRADCUBE_BCUBE_FORWARDING_PATH_SET_H_
#define GRADCUBE_BCUBE_FORWARDING_PATH_SET_H_

#include <tuple>
#include <vector>

#include "bcube_forwarding/address.h"
#include "bcube_forwarding/route.h"

namespace gradcube::bcube {

// A switch, or a cable.
struct SwitchId {
  unsigned level = 0;
  // Of a switch's servers, the one whose digit at the level is 0; of a cable's, the one whose next
  // digit the other has.
  ServerId first = 0;

  bool operator==(const SwitchId&) const = default;
  bool operator<(const SwitchId& other) const {
    return std::tie(level, first) < std::tie(other.level, other.first);
  }
};

// What a hop from this server goes over.
SwitchId switch_of(const AddressSpace& space, ServerId server, Hop hop);

// The servers that a route from `from` passes, both ends included.
std::vector<ServerId> servers_on(const AddressSpace& space, ServerId from, const Route& route);

// Of the server where a route from `from` ends, the port that its last hop comes in through.
unsigned port_at_end(const AddressSpace& space, ServerId from, const Route& route);

// The parallel paths whose servers are all there and whose hops all work, by ascending number of
// hops, then by the port that they leave through, which no two share. Each one that does not work
// is replaced, if possible, by a shortest working path through servers and switches that the others
// leave free. The others stay, even if there were room for more paths without them. So there is no
// path only if none of at most kMaxLevels hops works, or if the ends are the same server. Longer
// paths are left out, because a Route has no room for them.
std::vector<Route> parallel_paths(const AddressSpace& space, ServerId from, ServerId to,
                                  const HopFilter& works = {});

// What a flow between these servers may choose from (path_choice.h): the parallel paths, and the
// detours over other neighbours, of which parallel_paths() takes one for each level. Where a port
// is down only these lead around a relay that has much to do. At most `most`, the parallel ones
// first.
std::vector<Route> candidate_paths(const AddressSpace& space, ServerId from, ServerId to,
                                   std::size_t most, const HopFilter& works = {});

// The paths that messages between two trainers take (docs/messages.md): the parallel ones that a
// frame has room for (most_hops()), the shortest first. Of those that are equally short another one
// is first for each difference of the ends, so that short messages of all to all, which take the
// first path alone, spread over the ports.
std::vector<Route> message_paths(const AddressSpace& space, ServerId from, ServerId to);

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_PATH_SET_H_
