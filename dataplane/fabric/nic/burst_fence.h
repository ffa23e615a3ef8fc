// Keeps the memory that a driver shares with another process mapped while a poller reads or writes
// it.
//
// DPDK calls a driver's burst functions without a lock, and net_memif unmaps its rings on EAL's
// interrupt thread as soon as the process at the other end has gone. A poller that is in the middle
// of a burst then would die with SIGSEGV, and a neighbour's death would spread. So each queue has a
// fence: its poller enters before a burst and leaves after it. This file replaces munmap() of the
// whole program, the libraries' calls included, by one that first waits until every burst that was
// under way has ended. A driver has taken its queue out of use by then, so no later burst finds the
// memory.
//
// Threads: enter() and leave() are the poller's. munmap() is for any thread, but for one that is
// inside a fence. Fences may be made and destroyed on any thread.
//
// Errors: the constructor throws control::SetupError where the kernel has no membarrier() (Linux
// 4.14), or a sandbox forbids it.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_BURST_FENCE_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_BURST_FENCE_H_

#include <atomic>
#include <cstdint>

namespace gradcube::dataplane {

class BurstFence {
 public:
  BurstFence();
  ~BurstFence();
  BurstFence(const BurstFence&) = delete;
  BurstFence& operator=(const BurstFence&) = delete;

  // What orders this store before what the driver reads next is the membarrier() of
  // await_bursts(), which makes every thread of the process pass a full fence. A fence here would
  // wait in every burst for all that the last one has written into shared memory.
  void enter() {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void leave() {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Waits for the bursts of all fences of the process that are under way.
  static void await_bursts();

 private:
  void await() const;

  std::atomic<std::uint64_t> turns_{0};  // odd while a burst is under way
  BurstFence* next_;                     // in the list of all fences
  BurstFence** link_to_this_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_BURST_FENCE_H_
