#include "bcube_forwarding/link_watch.h"

#include <algorithm>

namespace gradcube::bcube {

LinkWatch::LinkWatch(const AddressSpace& space, ServerId self) : space_(space), self_(self) {
  for (unsigned level = 0; level < space.levels(); ++level) {
    links_.emplace_back(space.hop_digits(level));
  }
}

bool LinkWatch::end_interval() {
  bool changed = false;
  for (unsigned level = 0; level < space_.levels(); ++level) {
    for (unsigned digit = 0; digit < space_.hop_digits(level); ++digit) {
      if (!space_.joins(level, space_.digit(self_, level), digit)) continue;
      changed = end_interval(links_[level][digit]) || changed;
    }
  }
  return changed;
}

bool LinkWatch::end_interval(Link& link) {
  link.silent = link.heard ? 0 : std::min(link.silent + 1, kSilentIntervals);
  const bool silent = link.silent == kSilentIntervals;
  const bool heard = link.heard;
  link.heard = false;
  const bool was_up = link.up;
  if (link.up) {
    link.steady = std::min(link.steady + 1, kForget);
    if (!silent) return false;
    link.needed = link.steady == kForget ? kCalm : std::min(2 * link.needed, kMostCalm);
    link.up = false;
    link.calm = 0;
  } else {
    link.calm = silent ? 0 : link.calm + (heard ? 1 : 0);
    link.up = link.calm >= link.needed;
    link.steady = 0;
  }
  return link.up != was_up;
}

}  // namespace gradcube::bcube
