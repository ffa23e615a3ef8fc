#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_EMULATED_SWITCH_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_EMULATED_SWITCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/fabric/emulated/impairments.h"
#include "dataplane/fabric/emulated/link.h"
#include "dataplane/fabric/emulated/mac_table.h"
#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/fabric/emulated/switch_counters.h"
#include "dataplane/fabric/emulated/switch_shard.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

struct EmulatedSwitchOptions {
  LinkProfile profile;
  /// How many pollers share the work, 1 .. the ports' queues; 1 with a rate or a bounded queue,
  /// where all queues of a port share one wire.
  std::uint16_t shards = 1;
  /// Frames that an output holds where its queue is not bounded in bytes; a frame beyond is dropped
  /// over a limited link and waits at its sender over an unlimited one. Rounded up.
  std::uint32_t egress_frames = 8192;
  /// The same seed, settings and frames give the same losses, doubles and flipped bits.
  std::uint64_t seed = 1;
};

/// One of a switch's ports: the server's port at the other end of the cable, and the addresses that
/// are reached through it, as 48-bit numbers (02:47:... is 0x0247...).
struct SwitchPort {
  RingPort* port = nullptr;
  std::vector<std::uint64_t> addresses;
};

/// A shallow-buffered commodity Ethernet switch in this process, for embedded clusters and tests.
///
/// A frame's way: it waits in its server's uplink ring; over a limited link it then occupies the
/// server's wire for (frame + 24 bytes of preamble, FCS and gap, 84 at least) / rate; it is looked
/// up by its destination MAC; it may be lost, doubled, damaged or made late; it arrives at its
/// output queue, where it is dropped (tail drop) or marked (ECN) by the bytes it finds there; it
/// occupies the output's wire for as long again; and `delay` later it lies in the server's receive
/// ring of queue (UDP source port - 49152) mod queues. A server that sends faster than its wire
/// finds its uplink ring full. Without a rate and without a bound nothing is ever dropped: where a
/// receiver is slow, senders find their rings full.
///
/// Time is virtual: every moment above is computed from the frames' sizes and the times at which
/// the rings were seen empty, so polling late or irregularly delays frames but costs no capacity.
///
/// Ownership: refers to the ports and the pool, which must outlive it. Packets inside belong to it
/// and go with it. A frame's bytes are never written except for the mark, and only where the first
/// segment has no other owner; clones come from `clones`, a pool whose packets hold a whole frame,
/// and where it is empty (or nullptr) a frame passes undoubled and undamaged, and counted.
///
/// Threads: shard(s) belongs to one poller each; impairments, counts by any control thread at any
/// time; made and destroyed while nobody polls.
class EmulatedSwitch {
 public:
  /// Throws std::runtime_error when ports, shards or profile do not fit together, or an address
  /// stands there twice.
  EmulatedSwitch(const EmulatedSwitchOptions& options, const std::vector<SwitchPort>& ports,
                 const PacketPool* clones);

  std::uint16_t shards() const { return static_cast<std::uint16_t>(shards_.size()); }
  std::uint16_t ports() const { return ports_; }
  SwitchShard& shard(std::uint16_t index) { return *shards_.at(index); }

  /// What happens from now on to the frames that come in at `port` (and, for Impairments::up, those
  /// that go out there). Throws std::invalid_argument.
  void set_impairments(std::uint16_t port, const Impairments& impairments);
  /// The same for every port.
  void set_impairments(const Impairments& impairments);
  Impairments impairments(std::uint16_t port) const { return publisher_.current(port); }

  /// Of all shards together.
  SwitchPortCounts counts(std::uint16_t port) const;

 private:
  std::uint16_t ports_;
  MacTable macs_;
  ImpairmentPublisher publisher_;
  std::vector<std::unique_ptr<SwitchShard>> shards_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_EMULATED_SWITCH_H_
