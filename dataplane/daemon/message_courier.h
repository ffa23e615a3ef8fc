// Carries a node's messages to the daemons of other processes and back, as frames of its engines
// (protocol/message_frame.h, control/jobs/message_codec.h).
//
// Messages may be lost, doubled and reordered, as on any network: whoever sends one repeats it
// until it is answered. A neighbour gets them over the link to it. For other servers, and while
// that link is down, each message takes another of the parallel paths, in turn: so what is repeated
// finds a way around a relay of which this server does not know that it has failed.
//
// What comes is believed to be from the server that its frame names: who can put frames on the
// cluster's links can speak for any server.
//
// Ownership: the engines and the pool outlive it. A frame belongs to it until an engine takes it.
//
// Threads: the control thread. Frames go to the engine through Poller::call(), all that have
// gathered in one call.
#ifndef GRADCUBE_DATAPLANE_DAEMON_MESSAGE_COURIER_H_
#define GRADCUBE_DATAPLANE_DAEMON_MESSAGE_COURIER_H_

#include <cstdint>
#include <optional>
#include <rte_mbuf.h>
#include <vector>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"
#include "dataplane/daemon/node_engines.h"
#include "dataplane/host/packet_pool.h"
#include "protocol/message_assembler.h"

namespace gradcube::dataplane {

class MessageCourier {
 public:
  // engines: which hear others. incarnation: of the node. frames: for whole frames, of which none is longer than frame_bytes.
  MessageCourier(NodeEngines& engines, control::Incarnation incarnation, PacketPool& frames,
                 std::size_t frame_bytes);
  ~MessageCourier();
  MessageCourier(const MessageCourier&) = delete;
  MessageCourier& operator=(const MessageCourier&) = delete;

  // Leaves with the next flush(). Lost if no link is up or the pool is empty.
  void send(const control::NodeMessage& message);
  // Hands what has gathered to an engine. Whether there was something.
  bool flush();

  // The next message that has come in full; none is left when it returns nothing.
  std::optional<control::NodeMessage> receive(control::Instant now);

 private:
  struct Departing {
    unsigned level;  // of its first hop
    rte_mbuf* frame;
  };

  bcube::Route route_to(bcube::ServerId server) const;
  std::optional<control::NodeMessage> take_frame(const rte_mbuf& frame, control::Instant now);

  NodeEngines& engines_;
  control::Incarnation incarnation_;
  PacketPool& frames_;
  std::size_t frame_bytes_;
  std::uint32_t number_ = 0;  // of the next message
  std::vector<Departing> departing_;
  protocol::MessageAssembler assembler_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_MESSAGE_COURIER_H_
