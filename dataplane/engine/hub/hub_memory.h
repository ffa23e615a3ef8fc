// The weights of a hub at one server, and the state of what it owns: daemon's memory, which its
// trainers map to read. server_hub.h says what lies where.
//
// A memfd that can neither shrink nor grow. The daemon wrote zeros to all of it at construction, so
// no access to it allocates. Who may write and read it when: dataplane/hub/hub_exchange.h. A
// trainer reads a key's part between the end of a push of the key and its next one.
//
// Trainers have a descriptor that is open for reading. One of the daemon's own user could open the
// file anew and write to it; it would spoil its own job's weights, as it could with its gradients:
// the daemon reads no place and no length there.
//
// What a trainer maps stays as it is for as long as the trainer may read it, also when the job has
// ended, the trainer was evicted, or the daemon goes. Only when all its trainers have freed the hub
// or have gone are its pages given back at the end, lest one that keeps a mapping keeps memory that
// nobody pays for.
//
// Threads: any makes and destroys; the engines write. The rest: the control thread.
#ifndef GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_MEMORY_H_
#define GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_MEMORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "control/base/descriptor.h"
#include "dataplane/engine/memory/memory_quota.h"

namespace gradcube::dataplane {

class HubMemory {
 public:
  // numa_node: where its memory should be. Throws control::SetupError.
  HubMemory(std::uint64_t bytes, std::optional<unsigned> numa_node);
  ~HubMemory();
  HubMemory(const HubMemory&) = delete;
  HubMemory& operator=(const HubMemory&) = delete;

  std::uint8_t* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  // For trainers.
  int descriptor() const { return readers_.get(); }
  // No trainer reads it any more: at the end its pages go, wherever it is still mapped.
  void readers_have_left() {
    read_ = false;
    if (charge_ != nullptr) charge_->go();
  }
  // Its pages are the readers' from now on: the daemon ends.
  void outlive_daemon() { outlives_daemon_ = true; }
  bool goes_at_the_end() const { return !read_ && !outlives_daemon_; }
  // Who pays for it, until its pages have gone.
  void set_charge(MemoryQuota::Charge charge) {
    charge_ = std::make_shared<MemoryQuota::Charge>(std::move(charge));
  }
  // Null: nobody pays. A thread that frees what else it pays for keeps it until then.
  std::shared_ptr<const MemoryQuota::Charge> charge() const { return charge_; }
  std::uint64_t charged() const { return charge_ != nullptr ? charge_->bytes() : 0; }

 private:
  void unmap();

  control::Descriptor file_;
  control::Descriptor readers_;
  std::uint64_t bytes_;
  std::uint8_t* base_ = nullptr;
  bool read_ = true;
  bool outlives_daemon_ = false;
  std::shared_ptr<MemoryQuota::Charge> charge_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_MEMORY_H_
