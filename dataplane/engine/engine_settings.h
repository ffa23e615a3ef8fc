// What an engine is made with.
#ifndef GRADCUBE_DATAPLANE_ENGINE_ENGINE_SETTINGS_H_
#define GRADCUBE_DATAPLANE_ENGINE_ENGINE_SETTINGS_H_

#include <cstdint>
#include <vector>

#include "bcube_forwarding/address.h"
#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/frame_keys.h"
#include "dataplane/engine/hand_over.h"
#include "dataplane/engine/message_inbox.h"
#include "dataplane/fabric/port.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/urgency.h"
#include "dataplane/links/link_keeper.h"
#include "dataplane/links/server_links.h"
#include "protocol/credit.h"

namespace gradcube::dataplane {

struct EngineSettings {
  bcube::ServerId server = 0;
  std::uint16_t queue = 0;  // of every port
  // Thread t of any plan runs on the engine that has thread t modulo engines: so the source port of
  // its frames, which is t ports behind the first, steers them to the queue of that engine.
  std::vector<unsigned> threads;
  unsigned engines = 1;             // of the server
  std::uint32_t segment_bytes = 0;  // the most a segment carries; a multiple of kUnitBytes
  // Short pieces travel together up to so many. The same at all servers.
  std::uint32_t block_bytes = UINT32_MAX;
  unsigned window = 32;  // the most segments that a neighbour may be ahead, per flow
  FlowSettings flows;
  // What the engines of the server know of its links; without, all work.
  ServerLinks* links = nullptr;
  // The poller's, which is told of short collectives. Without, nobody is.
  Urgency* urgency = nullptr;
  // One engine of a server has an interval.
  GreetingSettings greetings;
  // How often flows' paths are probed and compared (path_chooser.h), and the seed of the pauses
  // between; 0: only when somebody asks.
  Nanoseconds probing_interval = 0;
  std::uint64_t probing_seed = 1;
  // With them all frames carry a MAC, and no other frame is taken; without, a CRC where the port's
  // medium can damage a frame. They outlive the engine.
  const ClusterKeys* keys = nullptr;
  // Of hashes over what trainers choose, so that none of them can make all of it collide.
  std::uint64_t hash_key = 1;
  // Of the links, by level; none: they are as fast as they go.
  std::vector<std::uint64_t> bits_per_second;
  // Where the messages of other servers go; without, nobody here reads them.
  MessageInbox* inbox = nullptr;
  // Where frames may come to the wrong queue: between this engine, whose number is that of its
  // queue, and its siblings. Without, each frame is taken for this engine's.
  HandOver* hand_over = nullptr;
  // Of the pollers of the server's other engines: they see the same links. They outlive the engine.
  std::vector<Doorbell*> siblings;
};

// A port of the server's, and the credit for what comes in through it, which its engines share.
struct EnginePort {
  Port* port = nullptr;
  protocol::PortCredit* credit = nullptr;
};

// Where an engine's packets come from (host/packet_memory.h).
struct EnginePools {
  PacketPool& segments;  // headers and references to payloads
  PacketPool& answers;   // acknowledgements and probes
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_ENGINE_SETTINGS_H_
