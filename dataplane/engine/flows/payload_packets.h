// The packets of one engine that point into memory of a job: its trainers', or its hub's. How many
// there may be, and how many there are.
//
// Each segment that is on its way, or that a receiver holds, points into such memory. So the count
// of these packets is also the count of what the job takes of the packet memory
// (host/packet_memory.h). It never exceeds the reservation. A segment that is sent again counts
// each time.
//
// The engine's thread points; any thread frees packets; the control thread makes and destroys, and
// asks for references(). The memory may go, and this may be destroyed, when they are 0.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_PAYLOAD_PACKETS_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_PAYLOAD_PACKETS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <rte_mbuf.h>
#include <utility>

#include "dataplane/host/packet_memory.h"

namespace gradcube::dataplane {

class PayloadPackets {
 public:
  // DPDK counts the references to external memory in 16 bits, and this object holds one.
  static constexpr unsigned kMost = UINT16_MAX - 1;

  explicit PayloadPackets(PacketReservation reserved)
      : reserved_(std::move(reserved)), quota_(std::min(reserved_.segments(), kMost)) {
    rte_mbuf_ext_refcnt_set(&shared_info_, 1);
    shared_info_.free_cb = [](void*, void*) {};
  }
  PayloadPackets(const PayloadPackets&) = delete;
  PayloadPackets& operator=(const PayloadPackets&) = delete;

  // Whether there may be one more.
  bool may_point() const { return rte_mbuf_ext_refcnt_read(&shared_info_) <= quota_; }
  // Makes `packet`, a fresh mbuf, point to the bytes. The packet's end gives the reference back.
  // Only where may_point().
  void point_at(rte_mbuf* packet, const std::uint8_t* bytes, std::uint16_t length) {
    rte_mbuf_ext_refcnt_update(&shared_info_, 1);
    rte_pktmbuf_attach_extbuf(packet, const_cast<std::uint8_t*>(bytes), RTE_BAD_IOVA, length,
                              &shared_info_);
    packet->data_len = length;
    packet->data_off = 0;
  }

  // Instead of the reservation so far. Before anything points.
  void set_reserved(PacketReservation reserved) {
    reserved_ = std::move(reserved);
    quota_ = std::min(reserved_.segments(), kMost);
  }
  std::uint32_t reserved() const { return reserved_.segments(); }
  unsigned references() const {
    const unsigned references = rte_mbuf_ext_refcnt_read(&shared_info_) - 1U;
    // The thread that gave the last one back read the memory before; it may be freed after this.
    std::atomic_thread_fence(std::memory_order_acquire);
    return references;
  }

 private:
  PacketReservation reserved_;
  unsigned quota_;
  rte_mbuf_ext_shared_info shared_info_{};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_PAYLOAD_PACKETS_H_
