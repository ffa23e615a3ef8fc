// A shallow-buffered commodity Ethernet switch in this process, for embedded clusters and tests.
//
// The path of a frame:
//
// 1. It waits in its server's uplink ring. A server that sends faster than its wire finds this
//    ring full.
// 2. Over a limited link it occupies the server's wire for (frame + 24 bytes of preamble, FCS and
//    gap, at least 84 bytes) / rate.
// 3. The switch looks up its destination MAC. The frame may be lost, duplicated, corrupted or made
//    late.
// 4. In a tree of switches it passes the trunks between its server's switch and the other's, which
//    it shares with others (trunk_tree.h).
// 5. It arrives at its output queue. It is dropped (tail drop) or marked (ECN) according to the
//    bytes in the queue.
// 6. It occupies the output's wire for the same time again.
// 7. After `delay` it is in the server's receive ring of queue (UDP source port - 49152) mod
//    queues.
//
// What a server has sent by an express queue (ring_port.h) stays in this lane: it waits in rings
// and lines of its own, and has its turns on both wires (express_turn.h).
//
// Without a rate and a bounded queue nothing is ever dropped: if a receiver is slow, its senders
// find their rings full.
//
// Time is virtual. Every time above is computed from the sizes of the frames and the times at
// which the rings were empty. So late or irregular polling delays frames but loses no bandwidth.
//
// Ownership: refers to the ports and the pool, which must outlive it. Owns the packets inside. It
// never writes a frame's bytes, except for the mark if the first segment has no other owner.
// Copies come from `clones`, a pool whose packets hold a whole frame. If this pool is empty or
// nullptr, a frame passes without duplication or corruption, and is counted.
//
// Threads: each shard belongs to one poller. Any control thread may call the impairment functions
// and counts() at any time. Made and destroyed while no poller runs.
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
#include "dataplane/fabric/emulated/trunk_tree.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

struct EmulatedSwitchOptions {
  LinkProfile profile;
  // How many pollers share the work, 1 to the number of the ports' queues. 1 with a rate or a
  // bounded queue, because then all queues of a port share one wire.
  std::uint16_t shards = 1;
  // Frames that an output holds if its queue is not bounded in bytes, rounded up to a power of
  // two. A further frame is dropped over a limited link and waits at its sender over an unlimited
  // one.
  std::uint32_t egress_frames = 8192;
  // Of a tree of switches, from the lowest level up; each with a rate, and so has the profile.
  std::vector<TrunkLevel> trunks{};
  // The same seed, settings and frames give the same losses, duplicates and flipped bits.
  std::uint64_t seed = 1;
};

// One of a switch's ports: the server's port at the other end of the link, and the MAC addresses
// behind it, as 48-bit numbers (02:47:... is 0x0247...). In a tree, those with consecutive places
// are below one switch. bits_per_second: of this link; 0: that of the switch's profile. No link has
// one of its own where the profile has none.
struct SwitchPort {
  RingPort* port = nullptr;
  std::vector<std::uint64_t> addresses;
  std::uint32_t place = 0;
  std::uint64_t bits_per_second = 0;
};

class EmulatedSwitch {
 public:
  // Ports, shards and profile fit together, as said above, and no address is given twice.
  EmulatedSwitch(const EmulatedSwitchOptions& options, const std::vector<SwitchPort>& ports,
                 const PacketPool* clones);

  std::uint16_t shards() const { return static_cast<std::uint16_t>(shards_.size()); }
  std::uint16_t ports() const { return ports_; }
  SwitchShard& shard(std::uint16_t index) { return *shards_.at(index); }

  // Sets the impairments of the frames that come in at `port` (and, for Impairments::up, of those
  // that go out there).
  void set_impairments(std::uint16_t port, const Impairments& impairments);
  // The same for every port.
  void set_impairments(const Impairments& impairments);
  Impairments impairments(std::uint16_t port) const { return publisher_.current(port); }

  // Of all shards together.
  SwitchPortCounts counts(std::uint16_t port) const;
  // Of a tree's trunks; none of a single switch.
  struct TrunkCounts {
    TrunkTree::TrunkAt at;
    SwitchPortCounts counts;
  };
  std::vector<TrunkCounts> trunk_counts() const;

 private:
  std::uint16_t ports_;
  MacTable macs_;
  ImpairmentPublisher publisher_;
  std::vector<std::unique_ptr<SwitchShard>> shards_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_EMULATED_SWITCH_H_
