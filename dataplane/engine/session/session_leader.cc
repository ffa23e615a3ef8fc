// The part of a session that tells what the leader engine runs alone from what concerns the
// server's other engines: whom it wakes and waits for.

#include <algorithm>

#include "dataplane/engine/session/session.h"

namespace gradcube::dataplane {

bool Session::concerns_all(unsigned lane, std::uint64_t number) const {
  const LeaderPart& leader = lanes_[lane].leader;
  const CollectiveRequest& collective = request(lane, number);
  return leader.choice == nullptr ||
         !leader.runs_alone[leader.choice->chosen(collective.kind, collective.bytes)];
}

void Session::wake_pollers() {
  bool concerned = hub() != nullptr;  // what is pushed concerns all
  for (Lane& lane : lanes_) {
    const std::uint64_t published = lane.published.load(std::memory_order_relaxed);
    if (lane.concerns_all <= lane.woken_at && published < lane.woken_at + kMostBegun) continue;
    lane.woken_at = published;
    concerned = true;
  }
  if (concerned) ring_pollers();
}

// No thread will read what stands there. Of those that were not woken some may not have passed what
// has ended.
bool Session::has_place(Lane& lane, std::uint64_t number) const {
  if (!attached_ || number <= lane.passed + kMaxInFlight) return true;
  std::uint64_t passed = UINT64_MAX;
  for (const Counter& counter : lane.finished) {
    passed = std::min(passed, counter.value.load(std::memory_order_acquire));
  }
  lane.passed = std::max(lane.passed, passed);
  return number <= lane.passed + kMaxInFlight;
}

std::uint64_t Session::finished_by_all(unsigned lane_number) const {
  const Lane& lane = lanes_[lane_number];
  std::uint64_t least = UINT64_MAX;
  for (unsigned thread = 0; thread < lane.finished.size(); ++thread) {
    const std::uint64_t finished = lane.finished[thread].value.load(std::memory_order_acquire);
    const bool is_concerned = lane.is_leaders(thread) || finished < lane.concerns_all;
    if (is_concerned) least = std::min(least, finished);
  }
  return least;
}

}  // namespace gradcube::dataplane
