// A port on one of DPDK's Ethernet devices (ethdevs): a shared-memory interface (memif_device.h), a
// ring, a NIC. The constructor configures and starts the device, the destructor stops and closes
// it; whoever made the device removes it afterwards.
//
// A burst costs one call of the driver in each direction. Frames that the device does not take wait
// in a backlog, in order, and transmit() and receive() try again: so transmit_room() is true
// whatever the driver can tell. A device that has no link loses what it is given, as a cable that
// is cut does; so does one that has taken nothing for kPatience, until it takes something again.
// Whether it has a link is asked only of a device that has taken nothing for kLinkPatience, and not
// more often: some drivers read slow registers for the answer, or lock.
//
// Frames are in one packet for the engine, whatever the device makes of them:
//
// - Received ones that came in several are copied into one. With a pool of its own
//   (EthdevQueuePools::device) the device's packets are copied always: jobs hold what they have
//   received for as long as a trainer is late, and some devices have few packets.
// - Sent ones pass as they are, chained or in external buffers, or, with a pool for them
//   (EthdevQueuePools::sent), are copied into one packet first: for devices that take no chains,
//   that cannot read all memory, or that keep for long what they have sent.
//
// Steering. A port with several queues has one engine behind each, and a frame says by its UDP
// source port which it wants. A device that takes flow rules is told so (queue_rules.h). One that
// offers RSS on UDP spreads the frames by a hash. One that has fewer queues to receive from than
// the port, or neither rules nor RSS, brings them to whichever it likes; with fewer, to queue 0
// alone. Where a frame comes to a wrong queue, the engines set it right
// (dataplane/engine/hand_over.h). To send, each queue needs one of the device's own.
//
// Pacing: as PacketPort (dataplane/fabric/kernel/packet_port.h). The queues share the rate evenly.
//
// Sleep. With receive interrupts (EthdevPortOptions::receive_interrupts, where the driver has them)
// prepare_wait() lets the queue's wake_descriptor() become readable when a frame arrives. Without,
// next_event() asks for a look at the device, kShortestLook to kLongestLook from now: the later,
// the longer the device is idle, and the longer the pauses were between the last few times that it
// was busy. So greetings alone keep nobody awake.
//
// Ownership: as port.h says; a received frame lies in a packet of its queue's pool. Pools and clock
// outlive the port.
//
// Threads: as port.h says; next_event(), prepare_wait() and finish_wait() too are for the queue's
// thread, and the clock is read there. wake_descriptor(), drop_counts() and has_link() are for
// any thread, and so is restart(), but for one at a time; with `ends_on_interrupt_thread` it is for
// EAL's interrupt thread alone, as it stops the device.
//
// Errors: only the constructor throws.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_PORT_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_PORT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/fabric/nic/burst_fence.h"
#include "dataplane/fabric/nic/ethdev_port_counters.h"
#include "dataplane/fabric/nic/queue_rules.h"
#include "dataplane/fabric/pacer.h"
#include "dataplane/fabric/waking_port.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/relaxed_counter.h"

namespace gradcube::dataplane {

// Of one queue. Queues of one poller may share them.
struct EthdevQueuePools {
  PacketPool* received = nullptr;  // of mtu + kEthernetBytes bytes at least
  PacketPool* device = nullptr;    // that the device receives into; null: those above
  PacketPool* sent = nullptr;      // for copies of what is sent; null: frames are sent as they are
};

struct EthdevPortOptions {
  std::uint16_t device = 0;  // DPDK's number of it
  std::string name = {};     // for messages
  // The largest IP packet, in bytes.
  std::uint32_t mtu = 1500;
  // What the device is told of it; 0: the same. net_memif takes no more than 1500 bytes for an
  // answer, and carries what its slots hold.
  std::uint32_t device_mtu = 0;
  std::vector<EthdevQueuePools> pools = {};
  std::uint16_t receive_depth = 256;   // of the device's queues
  std::uint16_t transmit_depth = 256;  // of the device's queues
  std::uint16_t backlog = 64;          // frames that the device has not taken; a power of two
  // In bytes on the wire, with kWireOverheadBytes; 0: not limited. At least LinkClock::kMinRate for
  // each queue.
  std::uint64_t bits_per_second = 0;
  // Asked for; a driver that has none goes without. Not for a port that is restarted, and flow
  // rules are not either.
  bool receive_interrupts = false;
  // In `status`, what the device itself tells: of its interrupts, its steering and its drops.
  bool tells_of_device = false;
  // Where it is stopped and closed: for a driver that takes links down on that thread, without a
  // lock.
  bool ends_on_interrupt_thread = false;
};

// How a device with several queues was told which frame is for which.
enum class DeviceSteering : std::uint8_t {
  none,   // not: the queues are as the device likes, or there is but one
  rss,    // by a hash
  rules,  // by the frame's UDP source port
};
std::string_view name(DeviceSteering steering);

class EthdevPort final : public WakingPort {
 public:
  // How soon the port tries again what the device did not take.
  static constexpr Nanoseconds kRetry = 60'000;
  // How long a device with a link may take nothing before it loses what it is given.
  static constexpr Nanoseconds kPatience = 100'000'000;
  // How long it may take nothing before it is asked whether it has a link, each time.
  static constexpr Nanoseconds kLinkPatience = 1'000'000;
  // How soon the device is looked at again, at least and at most.
  static constexpr Nanoseconds kShortestLook = 60'000;
  static constexpr Nanoseconds kLongestLook = 4'000'000;

  // Throws control::SetupError if the device refuses something, control::UsageError for a rate that
  // is too low and for more queues than the device can send from.
  EthdevPort(const EthdevPortOptions& options, Clock& clock);
  ~EthdevPort() override;

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  std::uint16_t transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  // In full frames; of shorter ones more may be accepted.
  std::uint16_t transmit_room(std::uint16_t queue) const override;

  // The earliest time at which there may be something to receive or to send; kNever if nothing
  // waits and the queue's descriptor tells of what comes, or nothing can come to this queue.
  Nanoseconds next_event(std::uint16_t queue) const override;

  // That becomes readable, as edge-triggered epoll sees it, for each frame that arrives between
  // prepare_wait() and finish_wait(); nobody reads it. -1: the driver has no receive interrupts.
  int wake_descriptor(std::uint16_t queue) const override { return queues_[queue].wake_descriptor; }
  // A frame that arrived before is not told: look once more afterwards.
  void prepare_wait(std::uint16_t queue) override;
  void finish_wait(std::uint16_t queue) override;

  // Whether the device is connected to something.
  bool has_link() const;

  // Stops the device and starts it again, for one that gets no new link by itself. Meanwhile, and
  // after a start that has failed until one succeeds, it receives nothing and loses what it is
  // given. True if it has started; whether it has a link is seen later. Waits for the queues'
  // bursts that are under way.
  bool restart();

  DeviceSteering steering() const { return steering_; }

  EthdevPortCounts drop_counts(std::uint16_t queue) const;
  // Of all queues.
  EthdevPortCounts drop_counts() const;
  void add_to_status(nlohmann::ordered_json& entry) override;

  // What the device has dropped since it was started; nothing if its driver does not tell. Asks the
  // driver, which reads registers beside the queues' bursts: for the control thread alone.
  std::optional<NicDropCounts> nic_drop_counts() const;

 private:
  // A cache line per queue, so that engines do not share one.
  struct alignas(64) Queue {
    Queue(const EthdevQueuePools& pools, std::uint16_t backlog, const Pacer& its_pacer);

    std::uint32_t waiting() const { return tail - head; }
    void note_busy(Nanoseconds now);

    BurstFence fence;
    Pacer pacer;
    PacketPool& received;
    rte_mempool* sent;             // null: frames are sent as they are
    std::uint16_t most_segments;   // of a received packet that is passed on without a copy
    std::vector<rte_mbuf*> slots;  // of the backlog
    std::uint32_t mask;
    std::uint32_t head = 0;  // free-running
    std::uint32_t tail = 0;
    int wake_descriptor = -1;
    bool armed = false;        // the device tells when a frame arrives
    bool stuck = false;        // the device loses what it does not take at once
    Nanoseconds took_at = 0;   // the device, something; or the backlog was empty
    Nanoseconds asked_at = 0;  // whether the device has a link
    Nanoseconds busy_at = 0;   // something was received or sent
    Nanoseconds pause = 0;     // between such times, smoothed
    EthdevPortNumbers<RelaxedCounter> numbers;
  };

  // ethdev_port_start.cc
  void start(const EthdevPortOptions& options);
  int configure(const EthdevPortOptions& options, const rte_eth_dev_info& facts);
  void find_wake_descriptors();
  void end_device();
  void set_up_queues(const EthdevPortOptions& options);
  rte_mbuf* whole(Queue& own, rte_mbuf* packet) const;
  static rte_mbuf* sendable(Queue& own, rte_mbuf* packet);
  void push(std::uint16_t queue, Nanoseconds now);
  void give_up(Queue& own, Nanoseconds now) const;
  bool is_found_without_link(Queue& own, Nanoseconds now) const;

  std::uint16_t device_;
  std::string name_;
  bool ends_on_interrupt_thread_;
  bool tells_of_device_;
  Clock& clock_;
  std::atomic<bool> running_{true};
  std::uint16_t receive_queues_ = 1;  // of the device
  DeviceSteering steering_ = DeviceSteering::none;
  std::optional<QueueRules> rules_;
  std::deque<Queue> queues_;
};

// Those of the numbers of DPDK's.
NicDropCounts nic_drops_of(const rte_eth_stats& stats);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_PORT_H_
