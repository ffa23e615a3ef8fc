// From this server to a frame's source, over the servers that the frame has come through.
#ifndef GRADCUBE_DATAPLANE_LINKS_WAY_BACK_H_
#define GRADCUBE_DATAPLANE_LINKS_WAY_BACK_H_

#include <optional>

#include "bcube_forwarding/neighbours.h"
#include "bcube_forwarding/route.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

inline protocol::LinkAddresses link_addresses(const bcube::Neighbour& neighbour) {
  return {neighbour.own.mac, neighbour.address.mac, neighbour.own.ip, neighbour.address.ip};
}

// The hop that leads to a neighbour: the link to it.
inline bcube::Hop hop_to(const bcube::Neighbour& neighbour) {
  return bcube::hop_to(neighbour.level, neighbour.digit);
}

// Nothing if the frame's hops, which are hostile, do not lead here.
std::optional<protocol::RoutingHeader> way_back(const bcube::NeighbourTable& neighbours,
                                                const protocol::RoutingHeader& routing);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_WAY_BACK_H_
