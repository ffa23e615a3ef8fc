// The slots out of which the kernel sends frames. A slot is free, then holds a frame that the
// kernel has not taken (unsent), then one that lies in the kernel's queues, and is free again.
//
// The kernel takes frames in order, when it is kicked, and stops at one that it refuses. Then the
// newest unsent frame moves to that slot: it leaves earlier than it should, which every receiver
// bears, and nothing stands still.
//
// One thread. Slots of a socket that outlives the ring.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_TRANSMIT_RING_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_TRANSMIT_RING_H_

#include <cstddef>
#include <cstdint>
#include <rte_mbuf.h>
#include <span>

namespace gradcube::dataplane {

class TransmitRing {
 public:
  // The slots, all free, of a socket.
  TransmitRing(std::span<std::byte* const> slots, int socket) : slots_(slots), socket_(socket) {}

  // Free slots.
  std::uint32_t room() const;
  // Frames that the kernel has not taken yet.
  std::uint32_t unsent() const { return unsent_; }

  // Copies the frame, of one or of many segments, into a slot; room() is not 0, and it fits. The
  // packet stays the caller's.
  void put(const rte_mbuf* packet);

  // Asks the kernel to take what is unsent, without waiting for anything.
  struct Kick {
    std::uint32_t refused = 0;  // frames that it will never take: their slots are free again
    int error = 0;              // of errno, why it has not taken the others; 0 if it does not say
  };
  Kick kick();

 private:
  std::size_t before_head(std::uint32_t slots) const {
    return head_ >= slots ? head_ - slots : head_ + slots_.size() - slots;
  }
  bool drop_refused();

  std::span<std::byte* const> slots_;
  int socket_;
  std::size_t head_ = 0;  // the slot that is filled next
  // The last slots before head_. The kernel frees them without a word, so room() looks.
  mutable std::uint32_t used_ = 0;
  std::uint32_t unsent_ = 0;  // the last of the used ones
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_TRANSMIT_RING_H_
