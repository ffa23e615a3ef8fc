// What other daemons tell this server's: frames of messages, from the server's engines to the
// control thread (protocol/message_frame.h).
//
// The engines do not read them. They put a whole frame in, and the control thread takes it out and
// looks at it. descriptor() is readable while frames wait. Whoever sends messages repeats them, so
// a frame for which there is no room is dropped.
//
// Ownership: owns the frames that wait. Their pools outlive it.
//
// Threads: put() for any engine; take() for the control thread.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MESSAGE_INBOX_H_
#define GRADCUBE_DATAPLANE_ENGINE_MESSAGE_INBOX_H_

#include <atomic>
#include <rte_mbuf.h>

#include "dataplane/host/event_descriptor.h"
#include "dataplane/host/packet_ring.h"

namespace gradcube::dataplane {

class MessageInbox {
 public:
  static constexpr unsigned kCapacity = 512;

  // Needs an Eal. Throws std::runtime_error if DPDK has no memory left, std::system_error if there
  // is no descriptor.
  MessageInbox() = default;
  MessageInbox(const MessageInbox&) = delete;
  MessageInbox& operator=(const MessageInbox&) = delete;

  // False if it is full: the frame stays with the caller.
  bool put(rte_mbuf* frame);
  // The caller's, or null if there is none. Makes descriptor() unreadable once there is none.
  rte_mbuf* take();
  int descriptor() const { return descriptor_.get(); }

 private:
  PacketRing ring_{kCapacity, Producers::several};
  control::Descriptor descriptor_ = event_descriptor();
  std::atomic<bool> rung_ = false;  // the descriptor is readable, or soon will be
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MESSAGE_INBOX_H_
