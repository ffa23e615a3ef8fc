// A switch's output queue, the wire behind it and the way to the server or, of a trunk
// (trunk_tree.h), to the next switch, in virtual time. The wire takes a frame as soon as it has
// carried the one before, at the time at which this is so. So the rate of polling does not matter:
// a late poll delivers late but loses no bandwidth.
//
// A frame is here from its arrival to its delivery. Up to its departure it takes room in the
// switch's memory; then it is on its way. Frames of the express lane (dataplane/fabric/port.h) and
// all others wait in two lines, which take turns on the wire (express_turn.h); the memory is
// theirs together. Over a limited link, a frame that finds the server's receive ring full is
// dropped, as by a NIC. Over an unlimited link it waits, and the switch receives no more frames:
// such a fabric loses nothing.
//
// Owns the packets inside and frees them when destroyed. One thread: the shard's.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_EGRESS_QUEUE_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_EGRESS_QUEUE_H_

#include <cstdint>
#include <rte_mbuf.h>

#include "dataplane/fabric/emulated/express_turn.h"
#include "dataplane/fabric/emulated/frame_line.h"
#include "dataplane/fabric/emulated/link.h"
#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/fabric/emulated/switch_counters.h"
#include "dataplane/fabric/link_clock.h"
#include "dataplane/host/clock.h"

namespace gradcube::dataplane {

class EgressQueue {
 public:
  // Holds at most `capacity` frames, rounded up to a power of two. A frame whose header is shared
  // is copied into a packet from `clones` (may be nullptr) before it is marked. A trunk has no
  // port. Frames for queues from `first_express` on are the express lane's.
  EgressQueue(RingPort* port, const LinkProfile& profile, std::uint32_t capacity,
              std::uint16_t first_express, rte_mempool* clones, SwitchPortCounters& counters);
  ~EgressQueue();
  EgressQueue(EgressQueue&&) noexcept = default;
  EgressQueue& operator=(EgressQueue&&) = delete;

  // A frame for receive queue `queue` has arrived: queues, marks or drops it. Arrivals must be in
  // the order of their times. `from`: the port of its sender, for who takes it out of a trunk.
  void admit(rte_mbuf* packet, std::uint16_t queue, std::int64_t arrival, std::uint16_t from = 0);
  // The same over an unlimited link; the caller has checked room().
  void pass(rte_mbuf* packet, std::uint16_t queue, std::int64_t arrival) {
    carried_.push({packet, arrival, 0, queue, 0});
  }

  // Delivers all frames that are due to the server, and returns how many.
  unsigned deliver(std::int64_t now);

  // Of a trunk: the first frame, which is due, with the time of its arrival behind it.
  FrameInLine take();

  // When the next frame is due, or kNever. The wire is never free while a frame waits for it, so
  // the next one that is due is known.
  std::int64_t next_due() const { return carried_.empty() ? kNever : carried_[0].time + delay_; }
  std::uint32_t room() const {
    return carried_.capacity() - carried_.size() - plain_.size() - express_.size();
  }

 private:
  void use_wire(std::int64_t now);
  void carry_one();
  void forget_departed(std::int64_t now);
  void pop(std::uint32_t count);
  rte_mbuf* marked(rte_mbuf* packet);

  RingPort* port_;
  SwitchPortCounters* counters_;
  rte_mempool* clones_;
  LinkClock wire_;
  std::int64_t delay_;
  std::uint64_t queue_limit_;
  std::uint64_t mark_limit_;
  bool waits_for_server_;
  std::uint16_t first_express_;
  std::uint64_t queued_bytes_ = 0;
  // What waits for the wire; and what it has taken, of which the first `departed_` have left it.
  FrameLine plain_;
  FrameLine express_;
  FrameLine carried_;
  std::uint32_t departed_ = 0;
  ExpressTurn turn_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_EGRESS_QUEUE_H_
