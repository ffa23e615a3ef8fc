// Carries a node's messages to the daemons of other processes and back, as frames of its engines
// (protocol/message_frame.h, control/jobs/message_codec.h).
//
// Messages may be lost, doubled and reordered, as on any network: whoever sends one repeats it
// until it is answered. A neighbour gets them over the link to it. To another server, and while
// that link is down, one message after the other takes the next of the parallel paths that work as
// far as the engine knows: so what is repeated finds a way around a failure of which it does not
// know.
//
// Daemons of other settings are not heard: before a message stands the fingerprint of those that
// all daemons of a cluster share (control/settings/cluster_fingerprint.h). What comes is believed
// to be from the server that its frame names: who has the cluster's key, or where there is none can
// put frames on its links, can speak for any server. A message is numbered among those to its
// server, for whom it must not come again.
//
// Ownership: the engines and the pool outlive it.
//
// Threads: the control thread. All messages that have gathered go to the engine in one
// Poller::call().
#ifndef GRADCUBE_DATAPLANE_DAEMON_MESSAGES_MESSAGE_COURIER_H_
#define GRADCUBE_DATAPLANE_DAEMON_MESSAGES_MESSAGE_COURIER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <rte_mbuf.h>
#include <vector>

#include "control/jobs/introductions.h"
#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"
#include "dataplane/daemon/engines/node_engines.h"
#include "dataplane/engine/flows/engine_counters.h"
#include "dataplane/host/packet_pool.h"
#include "protocol/mac.h"
#include "protocol/message_assembler.h"

namespace gradcube::dataplane {

struct MessageFrames {
  PacketPool* pool = nullptr;                  // outlives the courier
  std::size_t bytes = 0;                       // of the longest
  std::uint32_t fingerprint = 0;               // of the settings
  const protocol::ServerKeys* keys = nullptr;  // of their MACs; null: they have a CRC
};

class MessageCourier {
 public:
  // engines: which hear others. incarnation: of the node. introductions: the node's; it outlives
  // the courier.
  MessageCourier(NodeEngines& engines, control::Incarnation incarnation,
                 control::Introductions& introductions, const MessageFrames& frames);
  MessageCourier(const MessageCourier&) = delete;
  MessageCourier& operator=(const MessageCourier&) = delete;

  // Leaves with the next flush().
  void send(const control::NodeMessage& message);
  // Hands what has gathered to an engine. What the pool has no frames for is lost.
  void flush();
  // Of what has come, and what a stranger says. Fragments that come again are not counted; of
  // incomplete messages the whole is.
  FrameDrops dropped() const;

  // The next message that has come in full, after `frames` frames at most, which it counts down; a
  // stranger's, too. Nothing if there is none, or too few frames.
  std::optional<control::NodeMessage> receive(control::Instant now, unsigned& frames);

 private:
  struct Departing {
    bcube::ServerId to = 0;
    std::uint64_t number = 0;  // 1, 2, 3, ... among the messages to this server
    std::vector<std::uint8_t> bytes;
  };

  bool put(const Departing& message, const std::vector<bcube::Route>& paths, Engine& engine);
  std::optional<control::NodeMessage> take_frame(const rte_mbuf& frame, control::Instant now);

  NodeEngines& engines_;
  control::Incarnation incarnation_;
  control::Introductions& introductions_;
  MessageFrames frames_;
  std::map<bcube::ServerId, std::uint64_t> numbers_;  // of the last message to each
  std::vector<Departing> departing_;
  FrameDrops dropped_;  // but for what the assembler counts
  protocol::MessageAssembler assembler_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_MESSAGES_MESSAGE_COURIER_H_
