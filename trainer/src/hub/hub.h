// One hub as this trainer sees it: its keys, where their weights lie, which of them are being
// pushed, and what its server owns of them.
//
// Keys have two numbers: their place in the trainer's own list, and that among all ordered by name,
// which every trainer and daemon knows.
//
// Guarded by the session's mutex, but for what never changes. The mapping of the weights is read by
// any thread, between a push's end and the next push of its key.
#ifndef GRADCUBE_TRAINER_SRC_HUB_HUB_H_
#define GRADCUBE_TRAINER_SRC_HUB_HUB_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_key.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/private_in_child.h"
#include "trainer/src/hub/checkpoint_files.h"

#include "gradcube/gradcube_hub.h"

namespace gradcube::trainer {

class HubSaving;

// The daemon's memory of a hub: as the library reads it, and once more as callers have pointers
// into it, whose view can be closed while another thread of the library reads.
class HubMapping {
 public:
  HubMapping(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  ~HubMapping();
  HubMapping(const HubMapping&) = delete;
  HubMapping& operator=(const HubMapping&) = delete;

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  // For a caller's pointers into its first `bytes`, the weights; null, with errno, if the system
  // has no room for the view. A forked child has those of the moment of the fork, if there were
  // any. readable: the
  // daemon makes it 0 before it takes the memory back. The first time counts.
  const std::byte* show(std::size_t bytes, const std::uint32_t& readable);
  // From now on who reads what was shown is killed by SIGSEGV, and it takes no memory.
  void close_shown() noexcept;
  // Or reads a copy of it, which nobody changes, if there is memory for one, the daemon has not
  // taken this back, and it has weights.
  void keep_shown() noexcept;
  // False: from now on something else lies in the place of the weights.
  void set_has_weights(bool has_weights);

 private:
  void close_shown(const std::lock_guard<std::mutex>& lock) noexcept;

  std::byte* base_;
  std::size_t bytes_;
  std::mutex mutex_;  // of what is shown; under it only that of forks is taken
  std::byte* shown_ = nullptr;
  std::size_t shown_bytes_ = 0;
  const std::uint32_t* readable_ = nullptr;  // while something is shown
  bool is_closed_ = false;                   // what was shown is not the daemon's memory any more
  std::atomic<bool> has_weights_{true};      // written with mutex_ held
  std::optional<PrivateInChild> private_in_child_;
};

class Hub {
 public:
  struct Key {
    std::string name;
    std::size_t elements = 0;
    int dtype = 0;
    std::uint32_t number = 0;  // by name
    std::size_t begin = 0;     // in the memory of the weights
    std::size_t bytes = 0;
    bool pushed = false;   // the end of a push of it was not reported
    unsigned pulls = 0;    // threads that copy its weights
    unsigned waiting = 0;  // and threads that push it then
    // That the optimizer has taken: where it is asynchronous, as many as servers push.
    std::uint64_t steps = 0;
    // That have ended well, of any kind: as many on all trainers between the same pushes.
    std::uint64_t pushes = 0;
    // The last push has ended well, and what lies at its place are the weights after it.
    bool has_weights = false;
    int failure = 0;  // else: of the last push, if there was one
    // Of what is accumulated: the sum of the squares; nothing if nothing is.
    std::optional<double> squares;
  };

  // Elements of a key that this server owns, in float32: the weights, and the optimizer's state.
  struct Owned {
    std::uint32_t key = 0;  // by name
    std::uint64_t first_element = 0;
    std::uint64_t elements = 0;
    std::array<const float*, 3> arrays{};
  };

  // Throws Failure for settings that are none. number: 1, 2, 3, ... of the session's hubs.
  Hub(const gradcube_hub_settings& given, std::uint32_t number);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::uint32_t number() const { return number_; }
  unsigned lane() const { return lane_; }
  bool has_aggregator() const { return !aggregators_.empty(); }
  bool is_asynchronous() const { return staleness_ != shared::kSynchronous; }
  bool accumulates() const { return accumulates_; }
  std::size_t size() const { return keys_.size(); }
  // By the trainer's own list.
  Key& key(std::size_t place) { return keys_[place]; }
  const Key& key(std::size_t place) const { return keys_[place]; }
  const Key& key_by_name(std::size_t number) const { return keys_[by_name_[number]]; }
  std::size_t place_by_name(std::size_t number) const { return by_name_[number]; }
  const std::vector<control::HubKey>& keys_by_name() const { return ordered_; }
  // Of all keys together, as daemons lay them out.
  std::size_t bytes() const { return bytes_; }

  // What the daemon is told (shared::HubTable), and a digest of it and the lane, by which trainers
  // compare theirs.
  std::vector<char> table() const;
  std::uint64_t digest() const;

  // The daemon's memory of the hub. Throws Failure, also for what shared::HubHeader must not say.
  void map_memory(int descriptor);
  const std::byte* weights(const Key& key) const { return memory() + key.begin; }
  // How it has ended, and the notice that says why: GRADCUBE_OK while it is there.
  int end_code(std::uint32_t& notice) const;
  // What was copied of the memory before was there.
  bool is_readable() const;
  const std::byte* show() { return mapping_->show(bytes(), state().readable); }
  // What a caller has a pointer into: nobody can read it when the hub has gone.
  const std::shared_ptr<HubMapping>& mapping() const { return mapping_; }
  // By key and first element. Nothing that is read changes while none of this server's trainers has
  // a push of the key in flight.
  const std::vector<Owned>& owned() const { return owned_; }
  const aggregation::OptimizerSettings& optimizer() const { return settings_; }
  // Of float32 that are kept of a key: the weights, and the optimizer's state.
  std::size_t arrays() const { return 1 + aggregation::optimizer_states(settings_.rule); }
  // What this server's first trainer restores: what it owns; of a hub with an aggregator all, in
  // arrays that are null.
  std::vector<Owned> to_restore() const;
  // Of what is pushed of a key that is restored.
  std::size_t bytes_to_restore(const Key& key) const;

  // How long it may take to save what an aggregator has.
  int timeout_ms = -1;
  // A number that all trainers have of it, and no other hub has: its checkpoints tell it.
  std::uint64_t run = 0;
  bool is_being_freed = false;
  // Pushes whose end was not reported.
  unsigned in_flight = 0;
  // Threads that save or restore it at the moment, and threads that push to it or copy weights.
  unsigned calls = 0;
  unsigned uses = 0;
  // A checkpoint that is being written, or one that another trainer of the server writes.
  bool saves = false;
  bool copies = false;  // of the memory, by a thread without the lock
  // What an aggregator has was saved or loaded in part: something else may lie in the place of the
  // weights. Or a checkpoint was restored in part: not all weights are of one step.
  bool torn = false;
  std::uint64_t saved_step = 0;
  std::unique_ptr<HubSaving> saving;
  // By path: what this trainer has saved or restored, with the run that has written it, which the
  // next checkpoint there replaces.
  std::map<std::string, std::vector<std::pair<CheckpointFile, std::uint64_t>>> replaceable;

  // In a forked child, before its copy of the hub is destroyed: what is saved is the parent's, its
  // file and the thread that writes it; and what was shown stays, as another thread of the parent
  // may have held its mutex at the fork.
  void disown() noexcept;

 private:
  void read_state();
  const std::byte* memory() const { return mapping_->base(); }
  const shared::HubHeader& state() const {
    return *reinterpret_cast<const shared::HubHeader*>(memory() + bytes_);
  }

  std::uint32_t number_;
  unsigned lane_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::vector<std::uint32_t> aggregators_;  // ascending
  std::uint32_t staleness_ = shared::kSynchronous;
  bool accumulates_ = false;
  std::string optimizer_;
  std::vector<Key> keys_;
  std::vector<control::HubKey> ordered_;  // by name
  std::vector<std::size_t> by_name_;      // places in keys_
  std::size_t bytes_ = 0;
  std::shared_ptr<HubMapping> mapping_;
  aggregation::OptimizerSettings settings_;
  std::vector<Owned> owned_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_HUB_H_
