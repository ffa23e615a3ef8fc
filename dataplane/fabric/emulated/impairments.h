// What goes wrong with frames at a switch's ports, and how the control thread changes it while the
// shards run: it publishes, each shard looks once per round, and no shard waits.
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
FrameFault draw_fault(const Impairments& impairments, SeededRandom& random);

// Carries impairments from control threads to the shards of a switch: those of every port, and
// those of one port always whole.
//
// Threads: publish and current by any control thread; refresh by the shards, once per round, which
// never wait: one load as long as nothing has changed.
class ImpairmentPublisher {
 public:
  explicit ImpairmentPublisher(std::size_t ports) : current_(ports) {}

  // Takes effect at each shard's next round. Probabilities are within 0..1.
  void publish(std::size_t port, const Impairments& impairments);
  Impairments current(std::size_t port) const;

  // Brings `impairments` (of every port) up to date with the publisher; `seen` is the caller's
  // memory of what it read last, 0 at first. True when something has changed. While another thread
  // is at them the caller keeps its old ones until the next round.
  bool refresh(std::uint64_t& seen, std::vector<Impairments>& impairments) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Impairments> current_;       // guarded by mutex_, as are changes of version_
  std::atomic<std::uint64_t> version_{1};  // of all of them
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_IMPAIRMENTS_H_
