// One slot of a ring that is shared with the kernel: a header (TPACKET_V2), then a frame. The
// header's status says whose turn it is; who writes it hands the slot over.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_RING_SLOT_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_RING_SLOT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <linux/if_packet.h>

namespace gradcube::dataplane {

inline tpacket2_hdr& slot_header(std::byte* slot) { return *reinterpret_cast<tpacket2_hdr*>(slot); }

inline std::uint32_t slot_status(std::byte* slot) {
  return std::atomic_ref(slot_header(slot).tp_status).load(std::memory_order_acquire);
}

inline void set_slot_status(std::byte* slot, std::uint32_t status) {
  std::atomic_ref(slot_header(slot).tp_status).store(status, std::memory_order_release);
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_RING_SLOT_H_
