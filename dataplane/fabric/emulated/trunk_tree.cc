#include "dataplane/fabric/emulated/trunk_tree.h"

#include <algorithm>

namespace gradcube::dataplane {

TrunkTree::TrunkTree(const std::vector<TrunkLevel>& levels,
                     const std::vector<std::uint32_t>& places, std::uint16_t first_express,
                     const MacTable& macs, rte_mempool* clones)
    : macs_(&macs), places_(places) {
  const std::uint32_t last = *std::max_element(places.begin(), places.end());
  std::size_t count = 0;
  for (const TrunkLevel& level : levels) {
    places_below_.push_back(level.places);
    first_.push_back(count);
    count += 2 * (std::size_t{last} / level.places + 1);
  }
  counters_ = std::vector<SwitchPortCounters>(count);
  trunks_.reserve(count);
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const std::size_t end = level + 1 < levels.size() ? first_[level + 1] : count;
    while (trunks_.size() < end) {
      trunks_.emplace_back(nullptr, levels[level].link, levels[level].frames, first_express, clones,
                           counters_[trunks_.size()]);
    }
  }
}

std::size_t TrunkTree::first_due() const {
  const auto first = std::min_element(
      trunks_.begin(), trunks_.end(),
      [](const EgressQueue& a, const EgressQueue& b) { return a.next_due() < b.next_due(); });
  return static_cast<std::size_t>(first - trunks_.begin());
}

TrunkTree::TrunkAt TrunkTree::at(std::size_t trunk) const {
  TrunkAt at{.level = 1};
  while (at.level < first_.size() && trunk >= first_[at.level]) ++at.level;
  const std::size_t among = trunk - first_[at.level - 1];
  const std::uint32_t places = places_below_[at.level - 1];
  at.first_place = static_cast<std::uint32_t>(among / 2) * places;
  at.last_place = at.first_place + places - 1;
  at.up = among % 2 == 0;
  return at;
}

std::size_t TrunkTree::next_trunk(std::size_t trunk, std::uint16_t in, std::uint16_t out) const {
  const TrunkAt here = at(trunk);
  const unsigned level = here.level;
  if (here.up) {
    return level < highest_level(in, out) ? number_of(level + 1, in, Way::up)
                                          : number_of(level, out, Way::down);
  }
  return level > 1 ? number_of(level - 1, out, Way::down) : kNone;
}

}  // namespace gradcube::dataplane
