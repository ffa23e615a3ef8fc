// How far ahead the neighbours of a new trainer's engines may be: the window that its server offers
// for the trainer's job. The job gets the least of its members' offers (control/jobs/).
//
// The offer is the engines' own window if the packet memory of all engines has room for it, and
// else the half of it, again and again, down to kLeastWindow. A job takes at most half of what is
// free, so that others can come after it; only the least window may take all. What is offered is
// reserved, from the trainer's joining on.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_PACKET_OFFER_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_PACKET_OFFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/daemon/engines/node_engines.h"
#include "dataplane/host/packet_memory.h"

namespace gradcube::dataplane {

// With fewer segments under way a flow would wait for each acknowledgement.
inline constexpr unsigned kLeastWindow = 4;

struct PacketOffer {
  unsigned window = 0;                      // segments per flow; 0 of a server without engines
  std::vector<std::uint32_t> flows;         // that the job has, by engine
  std::vector<PacketReservation> reserved;  // by engine
};

// flows: that the job would have, by engine. Throws JoinRefused where not even the least window has
// room: it names the job and the server.
PacketOffer offer_packets(const std::string& job, const std::string& server,
                          const std::vector<std::uint32_t>& flows, const NodeEngines& engines);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_PACKET_OFFER_H_
