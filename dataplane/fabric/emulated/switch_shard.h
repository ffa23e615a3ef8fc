// One poller's part of an emulated switch. It carries the frames of its queues from every port to
// every port. EmulatedSwitch makes it; emulated_switch.h describes the path of a frame.
//
// Shard s of S serves queue q of every port if q mod S = s, and the express queue beside it
// (ring_port.h). A frame that is sent on one of its queues is delivered on one of its queues, and
// stays in its lane. So each ring has one producer and one consumer, and shards share only
// read-only tables.
//
// Threads: only the shard's poller calls poll() and next_event(); any thread may call counters().
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_SWITCH_SHARD_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_SWITCH_SHARD_H_

#include <cstdint>
#include <memory>
#include <rte_mbuf.h>
#include <span>
#include <vector>

#include "dataplane/fabric/emulated/egress_queue.h"
#include "dataplane/fabric/emulated/express_turn.h"
#include "dataplane/fabric/emulated/impairments.h"
#include "dataplane/fabric/emulated/link.h"
#include "dataplane/fabric/emulated/mac_table.h"
#include "dataplane/fabric/emulated/random.h"
#include "dataplane/fabric/emulated/reorder_buffer.h"
#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/fabric/emulated/switch_counters.h"
#include "dataplane/fabric/emulated/trunk_tree.h"
#include "dataplane/fabric/link_clock.h"
#include "dataplane/host/pollable.h"

namespace gradcube::dataplane {

class SwitchShard final : public Pollable {
 public:
  struct Setup {
    std::vector<RingPort*> ports;
    const MacTable* macs = nullptr;
    const ImpairmentPublisher* publisher = nullptr;
    rte_mempool* clones = nullptr;  // may be nullptr: then nothing is duplicated or corrupted
    // By port; all are limited, or none is.
    std::vector<LinkProfile> profiles;
    std::vector<std::uint32_t> egress_frames;
    // Of a tree: empty where one switch joins all ports; and where each port is.
    std::vector<TrunkLevel> trunks;
    std::vector<std::uint32_t> places;
    std::uint64_t seed = 0;
    std::uint16_t index = 0;
    std::uint16_t shards = 1;
  };

  explicit SwitchShard(const Setup& setup);
  ~SwitchShard() override;
  SwitchShard(const SwitchShard&) = delete;
  SwitchShard& operator=(const SwitchShard&) = delete;

  // Moves everything that is due at `now`, which must not go back. Returns how many packets it
  // received from servers or delivered to them; 0 if there was nothing to do. Receives at most one
  // burst per ring.
  unsigned poll(Nanoseconds now) override;
  // Over unlimited links: the same of the express lane.
  unsigned poll_urgent(Nanoseconds now) override;

  // The earliest time at which something becomes due by itself, or kNever. The doorbell of a port
  // announces what its server sends in the meantime.
  Nanoseconds next_event() const override;

  const SwitchPortCounters& counters(std::uint16_t port) const { return counters_[port]; }
  const TrunkTree* trunks() const { return trunks_.get(); }  // null: it is no tree

 private:
  // The link from one server to the switch. If it is limited, it carries one frame at a time.
  struct Uplink {
    RingPort* port;
    LinkClock wire;
    SeededRandom random;
    rte_mbuf* on_wire = nullptr;
    std::int64_t arrival = kNever;
    // When its rings were last empty. A frame found later was sent after this time; a frame found
    // in a ring that was not empty has been waiting for the wire.
    std::int64_t empty_at = 0;
    ExpressTurn turn{};
    std::uint16_t next_queue = 0;
    std::uint16_t on_wire_from = 0;  // the queue that it was sent on
  };

  void start(std::int64_t now);
  void take_changes();
  void release_late_frames(std::int64_t now);

  unsigned pass_unlimited(std::span<const std::uint16_t> queues, std::int64_t now);
  template <bool kImpaired>
  unsigned take_unlimited(std::span<const std::uint16_t> queues, std::int64_t now);
  template <bool kImpaired>
  unsigned take_limited(std::int64_t now);
  void load_wire(Uplink& uplink, std::int64_t now);
  bool waits(const Uplink& uplink, std::uint16_t first_of_lane) const;
  void take_in_turn(Uplink& uplink, std::uint16_t first_of_lane);
  bool every_output_has_room() const;
  std::int64_t first_arrival() const;

  template <bool kImpaired, bool kLimited>
  void forward(rte_mbuf* packet, std::uint16_t in, std::uint16_t in_queue, std::int64_t arrival);
  template <bool kImpaired, bool kLimited>
  void reach_output(rte_mbuf* packet, std::uint16_t in, std::uint16_t out, std::uint16_t queue,
                    std::int64_t arrival);
  template <bool kImpaired>
  void pass_trunks(std::int64_t until);
  template <bool kLimited>
  void impair(rte_mbuf* packet, std::uint16_t in, std::uint16_t out, std::uint16_t queue,
              std::int64_t arrival);
  template <bool kLimited>
  void enqueue(rte_mbuf* packet, std::uint16_t out, std::uint16_t queue, std::int64_t arrival);
  rte_mbuf* corrupted(rte_mbuf* packet, SeededRandom& details, SwitchPortCounters& counters);
  std::uint16_t receive_queue(const rte_mbuf* packet, std::uint16_t in_queue,
                              SwitchPortCounters& counters) const;

  const MacTable* macs_;
  const ImpairmentPublisher* publisher_;
  rte_mempool* clones_;
  bool limited_;
  bool started_ = false;
  bool impaired_ = false;
  bool holds_late_frames_ = false;
  std::uint16_t queue_count_;  // of the plain lane: the express queues have the numbers behind
  std::uint64_t queue_reciprocal_;
  std::uint32_t room_needed_;
  std::uint64_t seen_version_ = 0;
  std::vector<std::uint16_t> queues_;     // that this shard serves, express queues first
  std::vector<std::uint8_t> serves_;      // by queue of the plain lane: 1 when it is one of them
  std::vector<Impairments> impairments_;  // by input port
  std::vector<Uplink> uplinks_;
  std::vector<SwitchPortCounters> counters_;
  std::vector<EgressQueue> egress_;
  std::vector<ReorderBuffer> late_;  // by output port
  std::unique_ptr<TrunkTree> trunks_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_SWITCH_SHARD_H_
