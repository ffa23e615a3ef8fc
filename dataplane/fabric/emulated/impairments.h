// What goes wrong with frames at a switch's ports, and how the control thread changes it while the
// shards run: it publishes, each shard looks once per round, and nobody waits.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_IMPAIRMENTS_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_IMPAIRMENTS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "control/settings/impairments.h"
#include "dataplane/fabric/emulated/random.h"

namespace gradcube::dataplane {

using control::Impairments;

// The same as whole numbers, ready to be compared with a draw.
struct ImpairmentLimits {
  std::uint64_t loss = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t reorder = 0;
  std::uint64_t corrupt = 0;
  std::uint64_t frame_bytes = kAnyLength;  // of the longest that passes
  std::uint64_t up = 1;

  static constexpr std::uint64_t kAnyLength = UINT64_MAX;
  bool none() const {
    return (loss | duplicate | reorder | corrupt) == 0 && frame_bytes == kAnyLength && up != 0;
  }
};

// Throws std::invalid_argument when a probability is not within 0..1.
ImpairmentLimits limits_of(const Impairments& impairments);

// What chance decided about one frame.
struct FrameFault {
  bool lost = false;
  bool duplicated = false;
  bool reordered = false;
  bool corrupted = false;
  // Seeds everything else there is to decide about this frame (which bits, how late).
  std::uint64_t details = 0;
};

// Draws one frame's fault. Always takes the same count of numbers from the generator, so that
// switching one impairment on does not change what another one hits.
FrameFault draw_fault(const ImpairmentLimits& limits, SeededRandom& random);

// A seqlock that carries impairments from control threads to the shards of a switch: the settings
// of every port, and those of one port always whole.
//
// Threads: publish and current by any control thread (they take a lock among themselves); refresh
// by the shards, once per round, without a lock: one load as long as nothing has changed.
class ImpairmentPublisher {
 public:
  explicit ImpairmentPublisher(std::size_t ports);

  // Takes effect at each shard's next round. Throws std::invalid_argument, also for a port that is
  // not there, and then changes nothing.
  void publish(std::size_t port, const Impairments& impairments);
  Impairments current(std::size_t port) const;

  // Brings `limits` (one per port) up to date with the publisher; `seen` is the caller's memory of
  // what it read last, 0 at first. True when something has changed. While a writer is at work the
  // caller keeps its old limits until the next round.
  bool refresh(std::uint64_t& seen, std::vector<ImpairmentLimits>& limits) const {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    return version != seen && read(version, seen, limits);
  }

 private:
  struct Words {
    std::atomic<std::uint64_t> loss{0};
    std::atomic<std::uint64_t> duplicate{0};
    std::atomic<std::uint64_t> reorder{0};
    std::atomic<std::uint64_t> corrupt{0};
    std::atomic<std::uint64_t> frame_bytes{ImpairmentLimits::kAnyLength};
    std::atomic<std::uint64_t> up{1};
  };

  bool read(std::uint64_t version, std::uint64_t& seen,
            std::vector<ImpairmentLimits>& limits) const;

  mutable std::mutex writers_;
  std::vector<Impairments> current_;       // guarded by writers_
  std::atomic<std::uint64_t> version_{2};  // odd while a writer is at work
  std::vector<Words> words_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_IMPAIRMENTS_H_
