// The slots into which the kernel puts the frames that have arrived. It fills them in order, and
// drops a frame when the next slot is not free.
//
// One thread. Slots of a socket that outlives the ring.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_RECEIVE_RING_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_RECEIVE_RING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/fabric/kernel/ring_slot.h"

namespace gradcube::dataplane {

class ReceiveRing {
 public:
  explicit ReceiveRing(std::span<std::byte* const> slots) : slots_(slots) {}

  std::size_t slots() const { return slots_.size(); }

  // The oldest frame that has arrived, to be read until pop().
  struct Frame {
    const std::byte* data = nullptr;  // null: there is none
    std::uint32_t bytes = 0;          // that lie in the slot
    std::uint32_t sent_bytes = 0;     // more, if it was too long for the slot
  };
  Frame front() const {
    std::byte* slot = slots_[next_];
    if ((slot_status(slot) & TP_STATUS_USER) == 0) return {};
    const tpacket2_hdr& header = slot_header(slot);
    return {slot + header.tp_mac, header.tp_snaplen, header.tp_len};
  }
  // Gives its slot back to the kernel.
  void pop() {
    set_slot_status(slots_[next_], TP_STATUS_KERNEL);
    next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
  }

 private:
  std::span<std::byte* const> slots_;
  std::size_t next_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_RECEIVE_RING_H_
