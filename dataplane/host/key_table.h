// Finds what a 64-bit key stands for: a flow by the fields of a frame, a switch's port by a MAC.
//
// An open-addressed hash table. find() and remove() take constant time and allocate nothing; add()
// belongs to set-up. Keys that are looked for may be hostile: one that is not in the table costs a
// few probes, because at most half of the places are taken.
//
// Values are small and copied, and `kNone` is none of them; no key is 0. One thread changes it;
// while none does, any may look up.
#ifndef GRADCUBE_DATAPLANE_HOST_KEY_TABLE_H_
#define GRADCUBE_DATAPLANE_HOST_KEY_TABLE_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gradcube::dataplane {

template <typename Value, Value kNone>
class KeyTable {
 public:
  // kNone if it is not there.
  Value find(std::uint64_t key) const {
    for (std::size_t place = hash(key);; ++place) {
      const Entry& entry = entries_[place & mask_];
      if (entry.key == key) return entry.value;
      if (entry.value == kNone) return kNone;
    }
  }

  // The key must not be in the table yet. Where there is no memory it is not there.
  void add(std::uint64_t key, Value value) {
    assert(find(key) == kNone);
    if (2 * (count_ + 1) > entries_.size()) grow();
    std::size_t place = hash(key);
    while (entries_[place & mask_].value != kNone) ++place;
    entries_[place & mask_] = {key, value};
    ++count_;
  }

  // Does nothing if it is not there. A place in the middle of a run of probes cannot simply become
  // free: of those behind it the next one that may stand there moves there, and so on from its
  // place.
  void remove(std::uint64_t key) {
    std::size_t free = hash(key) & mask_;
    while (entries_[free].key != key) {
      if (entries_[free].value == kNone) return;
      free = (free + 1) & mask_;
    }
    entries_[free] = {};
    --count_;
    for (std::size_t at = (free + 1) & mask_; entries_[at].value != kNone; at = (at + 1) & mask_) {
      const std::size_t probed = at - hash(entries_[at].key);
      if ((probed & mask_) < ((at - free) & mask_)) continue;
      entries_[free] = std::exchange(entries_[at], {});
      free = at;
    }
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    Value value = kNone;  // kNone: this place is free
  };

  static std::size_t hash(std::uint64_t key) {
    // Fibonacci hashing: the product's high bits depend on all bits of the key.
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >> 32);
  }

  void grow() {
    std::vector<Entry> before(2 * entries_.size());
    before.swap(entries_);
    mask_ = entries_.size() - 1;
    count_ = 0;
    for (const Entry& entry : before) {
      if (entry.value != kNone) add(entry.key, entry.value);
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(16);  // a power of two
  std::size_t mask_ = 15;
  std::size_t count_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_KEY_TABLE_H_
