// The frames of other servers that wait for room in one port: what a relay has received and sends
// on (protocol/wire.h, source routing).
//
// Relayed frames and the server's own segments share the port by bytes, half each, as long as both
// wait; what one of them does not use is the other's. So a relay starves neither its own job nor
// those that it works for. A queue holds kCapacity frames: what two iterations of any port
// bring (Port::kMostPerIteration), or, with the port's own ring before it, many rotations of all
// neighbours behind the relay. Beyond that frames are dropped, as a switch
// drops them, and their senders send them again.
//
// Ownership: owns the frames that wait. Owned and used by one engine; no allocation.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_RELAY_QUEUE_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_RELAY_QUEUE_H_

#include <array>
#include <cstdint>
#include <rte_mbuf.h>

namespace gradcube::dataplane {

class RelayQueue {
 public:
  static constexpr unsigned kCapacity = 512;  // a power of two

  RelayQueue() = default;
  RelayQueue(const RelayQueue&) = delete;
  RelayQueue& operator=(const RelayQueue&) = delete;
  ~RelayQueue() {
    while (!empty()) rte_pktmbuf_free(take());
  }

  bool empty() const { return taken_ == put_; }

  // False if it is full: the frame stays with the caller.
  bool put(rte_mbuf* frame) {
    if (put_ - taken_ == kCapacity) return false;
    frames_[put_++ % kCapacity] = frame;
    return true;
  }

  // Whether the next frame may leave before the server's own segments. Not while it is empty.
  bool has_turn() const { return own_lead_ >= 0; }
  // The next frame, which counts for the port's shares. Not while it is empty.
  rte_mbuf* take() {
    rte_mbuf* frame = frames_[taken_++ % kCapacity];
    own_lead_ -= frame->pkt_len;
    return frame;
  }
  // So many bytes of the server's own segments have left.
  void count_own(std::uint32_t bytes) { own_lead_ += bytes; }
  // One of the two has nothing to send: nothing is saved or owed.
  void settle() { own_lead_ = 0; }

 private:
  std::array<rte_mbuf*, kCapacity> frames_{};
  std::uint32_t put_ = 0;  // of all frames ever; they wrap
  std::uint32_t taken_ = 0;
  std::int64_t own_lead_ = 0;  // bytes by which the server's own segments are ahead
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_RELAY_QUEUE_H_
