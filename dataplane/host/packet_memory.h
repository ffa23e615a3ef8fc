// The packet memory of a poller: its pools, and who may take how much of them.
//
// Segments and what has no segment (acknowledgements, probes) come from different pools, so no job
// can keep the acknowledgements of another from leaving. Acknowledgements are never held: they lie
// in rings and queues alone, which go on moving, so theirs is a pool of fixed size.
//
// A segment takes kPacketsPerSegment packets, from its making until its receiver has used it. Jobs
// reserve this memory: each engine of the poller has a PacketShare of the pool, and a job takes a
// PacketReservation out of the share before it is admitted. A reservation that is committed is
// backed by packets: the pool has grown far enough. Whoever sends on a reservation must not have
// more segments out than it holds (PayloadPackets::may_point()). So a job never waits for packets
// of another. What a pool has grown stays.
//
// Where ports copy what they receive, segments that wait for their trainer lie in packets of this
// side. A job holds no more of them than it may have segments out, as the window is the same in
// both directions: so a reservation is also one for so many received frames. Where a frame may come
// in at another poller of the server than its engine's, they may lie in that one's packets, all of
// them: such memories receive for each other (receive_for_each_other()), and what is committed of
// one has packets in all.
//
// Ownership: the shares belong to the memory, and outlive all reservations.
//
// Threads: the control thread. A pool grows through Poller::call().
//
// Errors: no room for a reservation is no exception. commit() throws std::runtime_error if DPDK has
// less memory than the pool's size promises.
#ifndef GRADCUBE_DATAPLANE_HOST_PACKET_MEMORY_H_
#define GRADCUBE_DATAPLANE_HOST_PACKET_MEMORY_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/host/packet_pool.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

// One for the headers, and one that points to the payload.
inline constexpr std::uint32_t kPacketsPerSegment = 2;

class PacketMemory;
class PacketShare;

// The right to have so many segments out. Gives itself back when it ends: no packet of it may be
// out then.
class PacketReservation {
 public:
  PacketReservation() = default;
  ~PacketReservation() { release(); }
  PacketReservation(PacketReservation&& other) noexcept { *this = std::move(other); }
  PacketReservation& operator=(PacketReservation&& other) noexcept;

  std::uint32_t segments() const { return segments_; }
  // Gives back all but `segments` (at most what it has), and sees to it that the packets of these
  // are there. Does nothing once it has.
  void commit(std::uint32_t segments);

 private:
  friend class PacketShare;
  PacketReservation(PacketShare& share, std::uint32_t segments)
      : share_(&share), segments_(segments) {}
  void release();

  PacketShare* share_ = nullptr;
  std::uint32_t segments_ = 0;
  bool committed_ = false;
};

// What one engine's jobs may reserve.
class PacketShare {
 public:
  // memory: null for an account that no pool stands behind.
  explicit PacketShare(std::uint32_t segments, PacketMemory* memory = nullptr)
      : most_(segments), memory_(memory) {}
  PacketShare(const PacketShare&) = delete;
  PacketShare& operator=(const PacketShare&) = delete;

  // In segments.
  std::uint32_t most() const { return most_; }
  std::uint32_t reserved() const { return reserved_; }
  std::uint32_t free() const { return most_ - reserved_; }
  // Without a pool: 0.
  std::uint64_t bytes_of_segment() const;

  // Nothing if more is asked for than is free.
  std::optional<PacketReservation> reserve(std::uint32_t segments);

 private:
  friend class PacketReservation;
  std::uint32_t most_;
  PacketMemory* memory_;
  std::uint32_t reserved_ = 0;
};

struct PacketMemoryOptions {
  std::string name;            // of the poller: unique in the process, at most 16 characters
  std::uint32_t segments = 0;  // that can be reserved
  std::uint32_t answers = 0;   // packets for what has no segment
  // Packets that lie idle in the caches of lcores that free them.
  std::uint32_t idle = 0;
  int numa_node = -1;  // of the poller; -1: not known
  // Where a port copies what it receives: bytes of the longest frame. 0: ports pass on the packets
  // of their senders.
  std::uint32_t received_frame_bytes = 0;
  // Of all memories that receive for each other, this one's included; 0: as many as `segments`.
  std::uint32_t received_segments = 0;
  // Received frames that belong to no segment that a job may hold: in bursts, queues of relays, and
  // messages.
  std::uint32_t received_beside = 0;
};

class PacketMemory {
 public:
  // Of a poller that outlives it.
  PacketMemory(const PacketMemoryOptions& options, Poller& poller);
  PacketMemory(const PacketMemory&) = delete;
  PacketMemory& operator=(const PacketMemory&) = delete;

  // Before anything is committed. They outlive each other's reservations.
  static void receive_for_each_other(const std::vector<PacketMemory*>& memories);

  // Before anything is committed: the packets of so many segments of each are there from now on, or
  // of all that it has. Nobody waits for memory then who commits no more.
  static void make_ready(const std::vector<PacketMemory*>& memories, std::uint32_t segments);

  // The shares of all engines together have at most the options' segments.
  PacketShare& add_share(std::uint32_t segments) { return shares_.emplace_back(segments, this); }

  // The poller's engines allocate, any thread frees.
  PacketPool& segments() { return segments_; }
  PacketPool& answers() { return answers_; }
  // For received frames; null where ports pass on the packets of their senders.
  PacketPool* received() { return received_.get(); }

  // Of segments, over all shares.
  std::uint64_t reserved() const;
  std::uint64_t most() const { return most_; }
  std::uint64_t bytes_of_segment() const;
  // What the pools have grown to.
  std::uint64_t bytes() const;

 private:
  friend class PacketReservation;
  void commit(std::uint32_t segments);
  void uncommit(std::uint32_t segments);
  void grow(PacketPool& pool, std::uint32_t packets);

  Poller& poller_;
  std::uint32_t most_;
  std::uint32_t idle_;
  std::uint32_t received_beside_;
  PacketPool segments_;
  PacketPool answers_;
  std::unique_ptr<PacketPool> received_;
  std::deque<PacketShare> shares_;
  std::vector<PacketMemory*> receiving_{this};  // where frames for this one's engines may lie
  std::uint32_t committed_ = 0;
  std::uint32_t receivable_ = 0;  // of all that have this one in receiving_
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_PACKET_MEMORY_H_
