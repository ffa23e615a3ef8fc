#include "dataplane/engine/flows/flow_table.h"

#include <algorithm>
#include <bit>

namespace gradcube::dataplane {

void FlowTable::add(std::uint64_t key, Flow& flow) {
  if (2 * (count_ + 1) > entries_.size()) {
    const std::vector<Entry> before = entries_;
    rebuild(2 * entries_.size(), before);
  }
  std::size_t place = hash(key);
  while (entries_[place & mask_].flow != nullptr) ++place;
  entries_[place & mask_] = {key, &flow};
  ++count_;
}

// Anew, because a place in the middle of a run of probes cannot simply become free.
void FlowTable::remove_all_of(protocol::JobId job) {
  std::vector<Entry> rest = entries_;
  std::erase_if(rest, [job](const Entry& entry) { return entry.key >> 32 == job; });
  shrink_to(rest);
}

void FlowTable::remove_if(const std::function<bool(const Flow&)>& leaves) {
  std::vector<Entry> rest = entries_;
  std::erase_if(
      rest, [&leaves](const Entry& entry) { return entry.flow != nullptr && leaves(*entry.flow); });
  shrink_to(rest);
}

void FlowTable::shrink_to(const std::vector<Entry>& rest) {
  const auto left = static_cast<std::size_t>(std::count_if(
      rest.begin(), rest.end(), [](const Entry& entry) { return entry.flow != nullptr; }));
  rebuild(std::max<std::size_t>(16, std::bit_ceil(2 * left)), rest);
}

void FlowTable::rebuild(std::size_t places, const std::vector<Entry>& entries) {
  entries_.assign(places, {});
  mask_ = places - 1;
  count_ = 0;
  for (const Entry& entry : entries) {
    if (entry.flow != nullptr) add(entry.key, *entry.flow);
  }
}

}  // namespace gradcube::dataplane
