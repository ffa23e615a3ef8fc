// One of a server's ports as an engine sees it, for every fabric. A port has as many queue pairs
// as the server has engines. Queue pair q belongs to one engine's thread, so engines share nothing
// here. The calls are virtual, once per burst.
//
// Bursts. An engine's iteration receives packets by kBurst at a time, so that they are in the
// caches while it handles them, and hands over all that it sends in one call. How many it moves in
// each direction is the port's to say (per_iteration()): one burst; more where a call costs as much
// as many packets, and less for each the more of them go to the same peer.
//
// Lanes. A port may have an express queue beside each queue, for frames that must not wait behind
// long ones: those of short collectives. It has room of its own, and what is between it and its
// peer lets its frames overtake those of the queue, while neither starves the other. Both arrive at
// the peer's receive queue; receive() of the express queue brings those of the express lane alone.
//
// Ownership: a received packet belongs to the caller. A packet that transmit() accepts belongs to
// the port; the others stay with the caller. A packet may be chained, and its later segments may
// be external buffers: they are passed on by reference and never written.
//
// Threads: only the thread that owns queue q calls receive(), transmit() and transmit_room() with
// q, and the latter two with its express queue. Any thread may call counts(). Nobody but the
// control thread calls the others.
#ifndef GRADCUBE_DATAPLANE_FABRIC_PORT_H_
#define GRADCUBE_DATAPLANE_FABRIC_PORT_H_

#include <cassert>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <rte_mbuf.h>
#include <string>
#include <vector>

#include "dataplane/host/counter_table.h"
#include "dataplane/host/relaxed_counter.h"

namespace gradcube::dataplane {

// What went through a port or one of its queues, in frames and in bytes of frame (without
// preamble, FCS and gap). `Number` is a RelaxedCounter where frames are counted and a plain number
// where counts are read.
template <typename Number>
struct PortNumbers {
  Number received_packets{};
  Number received_bytes{};
  Number sent_packets{};
  Number sent_bytes{};

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    visit(CounterEntry{"rx_packets"}, objects.received_packets...);
    visit(CounterEntry{"rx_bytes"}, objects.received_bytes...);
    visit(CounterEntry{"tx_packets"}, objects.sent_packets...);
    visit(CounterEntry{"tx_bytes"}, objects.sent_bytes...);
  }
};
using PortCounts = PortNumbers<std::uint64_t>;

class Port {
 public:
  static constexpr std::uint16_t kBurst = 32;
  static constexpr std::uint16_t kMostPerIteration = 256;

  virtual ~Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Receives up to `count` packets and returns how many.
  virtual std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) = 0;
  // Accepts as many of the packets as there is room for, the first ones first, and returns how
  // many.
  virtual std::uint16_t transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) = 0;
  // How many packets transmit() would accept now. An engine checks this before it builds packets.
  virtual std::uint16_t transmit_room(std::uint16_t queue) const = 0;

  // The express queue beside a queue; the queue itself: the port has no lanes.
  virtual std::uint16_t express_queue(std::uint16_t queue) const { return queue; }

  // For the control thread. Why the port can send and receive nothing, in words; empty if it can.
  virtual std::string problem() const { return ""; }
  // Now and then: looks whether what the port stands on is still there, and sets problem().
  virtual void look() {}
  // Adds to the port's entry in `status` what it has beside counts().
  virtual void add_to_status(nlohmann::ordered_json& /*entry*/) {}

  std::uint16_t queues() const { return static_cast<std::uint16_t>(counters_.size()); }
  // kBurst to kMostPerIteration; what is received may go beyond it by part of a burst.
  std::uint16_t per_iteration() const { return per_iteration_; }
  // The largest IP packet, in bytes: a frame is 14 bytes longer.
  std::uint32_t mtu() const { return mtu_; }

  PortCounts counts(std::uint16_t queue) const {
    PortCounts counts;
    add_counters(counts, counters_.at(queue));
    return counts;
  }
  PortCounts counts() const {
    PortCounts sum;
    for (const QueueCounters& of_queue : counters_) add_counters(sum, of_queue);
    return sum;
  }

 protected:
  Port(std::uint16_t queues, std::uint32_t mtu, std::uint16_t per_iteration = kBurst)
      : mtu_(mtu), per_iteration_(per_iteration), counters_(queues) {
    assert(queues != 0 && per_iteration <= kMostPerIteration);
  }

  void count_received(std::uint16_t queue, std::uint16_t packets, std::uint64_t bytes) {
    counters_[queue].received_packets.add(packets);
    counters_[queue].received_bytes.add(bytes);
  }
  void count_sent(std::uint16_t queue, std::uint16_t packets, std::uint64_t bytes) {
    counters_[queue].sent_packets.add(packets);
    counters_[queue].sent_bytes.add(bytes);
  }
  static std::uint64_t total_bytes(rte_mbuf* const* packets, std::uint16_t count) {
    std::uint64_t bytes = 0;
    for (std::uint16_t i = 0; i < count; ++i) bytes += packets[i]->pkt_len;
    return bytes;
  }

 private:
  // A cache line per queue, so that engines that count do not share one.
  struct alignas(64) QueueCounters : PortNumbers<RelaxedCounter> {};

  std::uint32_t mtu_;
  std::uint16_t per_iteration_;
  std::vector<QueueCounters> counters_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_PORT_H_
