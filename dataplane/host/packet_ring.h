// A bounded queue of packets, from one producer thread or several to one consumer thread.
//
// It is an rte_ring in memory of its own. A ring with a name would take one of DPDK's 2560 memory
// zones, and an emulated cluster has hundreds of rings.
//
// Ownership: the packets inside belong to the ring and are freed with it.
#ifndef GRADCUBE_DATAPLANE_HOST_PACKET_RING_H_
#define GRADCUBE_DATAPLANE_HOST_PACKET_RING_H_

#include <cstdint>
#include <rte_mbuf.h>
#include <rte_ring.h>

namespace gradcube::dataplane {

enum class Producers { one, several };

class PacketRing {
 public:
  // Holds exactly `depth` packets (1 .. 2^20). Throws std::runtime_error if DPDK has no memory
  // left. Needs an Eal.
  explicit PacketRing(std::uint32_t depth, Producers producers = Producers::one);
  ~PacketRing();
  PacketRing(PacketRing&& other) noexcept : ring_(other.ring_) { other.ring_ = nullptr; }
  PacketRing& operator=(PacketRing&&) = delete;

  // Producer: enqueues as many packets as fit and returns how many.
  std::uint16_t put(rte_mbuf* const* packets, std::uint16_t count) {
    return static_cast<std::uint16_t>(
        rte_ring_sp_enqueue_burst(ring_, reinterpret_cast<void* const*>(packets), count, nullptr));
  }
  // One of several producers: false if it is full.
  bool put_among_others(rte_mbuf* packet) { return rte_ring_mp_enqueue(ring_, packet) == 0; }
  // Consumer: dequeues up to `count` packets and returns how many.
  std::uint16_t take(rte_mbuf** packets, std::uint16_t count) {
    return static_cast<std::uint16_t>(
        rte_ring_sc_dequeue_burst(ring_, reinterpret_cast<void**>(packets), count, nullptr));
  }
  bool empty() const { return rte_ring_empty(ring_) != 0; }
  std::uint32_t used() const { return rte_ring_count(ring_); }
  std::uint32_t room() const { return rte_ring_free_count(ring_); }

 private:
  rte_ring* ring_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_PACKET_RING_H_
