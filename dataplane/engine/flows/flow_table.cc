#include "dataplane/engine/flows/flow_table.h"

#include <utility>

namespace gradcube::dataplane {

void FlowTable::add(std::uint64_t key, Flow& flow) {
  if (2 * (count_ + 1) > entries_.size()) grow();
  std::size_t place = hash(key);
  while (entries_[place & mask_].flow != nullptr) ++place;
  entries_[place & mask_] = {key, &flow};
  ++count_;
}

void FlowTable::grow() {
  std::vector<Entry> before(2 * entries_.size());
  before.swap(entries_);
  mask_ = entries_.size() - 1;
  count_ = 0;
  for (const Entry& entry : before) {
    if (entry.flow != nullptr) add(entry.key, *entry.flow);
  }
}

// A place in the middle of a run of probes cannot simply become free: of those behind it the next
// one that may stand there moves there, and so on from its place.
void FlowTable::remove(std::uint64_t key) {
  std::size_t free = hash(key) & mask_;
  while (entries_[free].key != key) {
    if (entries_[free].flow == nullptr) return;
    free = (free + 1) & mask_;
  }
  entries_[free] = {};
  --count_;
  for (std::size_t at = (free + 1) & mask_; entries_[at].flow != nullptr; at = (at + 1) & mask_) {
    const std::size_t probed = at - hash(entries_[at].key);
    if ((probed & mask_) < ((at - free) & mask_)) continue;
    entries_[free] = std::exchange(entries_[at], {});
    free = at;
  }
}

}  // namespace gradcube::dataplane
