// Frames that have come to the wrong engine of their server, on their way to the right one.
//
// A frame says by its UDP source port which queue it wants, and so which engine. The embedded
// fabric and the kernel's filter go by it. A NIC does as far as it takes flow rules; else its RSS
// spreads frames by a hash, or all of them come to one queue. So where the fabric's steering is
// uncertain (Steering, dataplane/fabric/fabric.h), the engine that gets a frame of a sibling's
// hands it over, and the sibling handles it as if it had come to its own queue of that port.
//
// A ring for each two engines and each direction holds kDepth frames. Where one is full, the frame
// is dropped and counted, as a NIC drops what its queue has no room for; its sender sends it again.
// Frames are gathered, and put into the rings once per burst: a ring costs both sides a cache line
// each time. A sibling whose poller sleeps is rung.
//
// Ownership: owns the frames that are under way. They lie in packets of the poller that received
// them, and whoever has one frees it: pools outlive this. rte_mbuf::port is the number of the
// server's port while a frame is here.
//
// Threads: put(), flush() for the thread of engine `from`, take() for that of engine `to`.
// discard(), construction and destruction: while no engine runs.
#ifndef GRADCUBE_DATAPLANE_ENGINE_HAND_OVER_H_
#define GRADCUBE_DATAPLANE_ENGINE_HAND_OVER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <rte_mbuf.h>
#include <vector>

#include "dataplane/host/doorbell.h"
#include "dataplane/host/packet_ring.h"

namespace gradcube::dataplane {

class HandOver {
 public:
  // As many as a NIC's queue holds: while the sibling's poller is away, it bridges as long a time.
  static constexpr std::uint32_t kDepth = 512;
  // Frames that are put between two calls of flush(), at most.
  static constexpr unsigned kBurst = 32;

  struct Flushed {
    unsigned passed = 0;
    unsigned dropped = 0;  // for want of room
  };

  // doorbells: of the engines' pollers, by engine; they outlive this. Needs an Eal. Throws
  // std::runtime_error if DPDK has no memory left.
  explicit HandOver(std::vector<Doorbell*> doorbells, std::uint32_t depth = kDepth);
  ~HandOver();
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  unsigned engines() const { return static_cast<unsigned>(doorbells_.size()); }

  // Takes a frame for another engine.
  void put(unsigned from, unsigned to, rte_mbuf* frame) {
    Way& way = *ways_[from][to];
    way.gathered[way.count++] = frame;
  }
  // Passes on what has been put.
  Flushed flush(unsigned from);
  // Returns up to `count` frames that `from` has handed to `to`; they are the caller's.
  std::uint16_t take(unsigned from, unsigned to, rte_mbuf** frames, std::uint16_t count) {
    return ways_[from][to]->ring.take(frames, count);
  }

  // Frees all that is under way.
  void discard();

 private:
  // What is written is the sender's alone, and in cache lines of its own.
  struct alignas(64) Way {
    explicit Way(std::uint32_t depth) : ring(depth) {}
    PacketRing ring;
    unsigned count = 0;
    std::array<rte_mbuf*, kBurst> gathered{};
  };

  std::vector<Doorbell*> doorbells_;
  std::vector<std::vector<std::unique_ptr<Way>>> ways_;  // [from][to]; null to itself
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HAND_OVER_H_
