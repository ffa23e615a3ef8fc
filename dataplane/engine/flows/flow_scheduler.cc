#include "dataplane/engine/flows/flow_scheduler.h"

#include "dataplane/engine/flows/flow.h"

namespace gradcube::dataplane {

bool FlowScheduler::Share::any_awake() const {
  return std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) {
    return std::any_of(lane.steps.begin(), lane.steps.end(),
                       [](const auto& flows) { return flows->any_awake(); });
  });
}

FlowScheduler::Lane& FlowScheduler::lane_of(Share& share, const Rank& rank) {
  for (Lane& lane : share.lanes) {
    if (lane.number == rank.lane) return lane;
  }
  // Behind those of the same priority, which have lower numbers.
  const auto after = std::find_if(share.lanes.begin(), share.lanes.end(),
                                  [&](const Lane& lane) { return lane.priority < rank.priority; });
  return *share.lanes.insert(after, Lane{rank.lane, rank.priority, {}});
}

std::size_t FlowScheduler::share_of(const EngineJob& job, const Rank& rank) {
  for (std::size_t share = 0; share < shares_.size(); ++share) {
    if (shares_[share].job == &job && shares_[share].mail == rank.mail) return share;
  }
  // There may be room for one more than there are.
  awake_.resize(shares_.size() + 1);
  short_.resize(shares_.size() + 1);
  shares_.push_back(Share{&job, rank.mail, rank.weight, 0, 0, {}});
  renew_quanta();
  return shares_.size() - 1;
}

FlowRotation& FlowScheduler::rotation_of(Share& share, const Rank& rank) {
  Lane& lane = lane_of(share, rank);
  while (lane.steps.size() <= rank.step) lane.steps.push_back(std::make_unique<FlowRotation>());
  return *lane.steps[rank.step];
}

void FlowScheduler::make_room(const EngineJob& job, const Rank& rank) {
  rotation_of(shares_[share_of(job, rank)], rank).make_room();
}

void FlowScheduler::add(const EngineJob& job, const Rank& rank, Flow& flow) {
  const std::size_t share = share_of(job, rank);
  FlowRotation& rotation = rotation_of(shares_[share], rank);
  flow.scheduled = {&rotation, rotation.add(flow), share};
}

void FlowScheduler::renew_quanta() {
  std::int64_t least = INT64_MAX;
  for (const Share& share : shares_) least = std::min<std::int64_t>(least, share.weight);
  for (Share& share : shares_) {
    share.quantum = (std::int64_t{quantum_} * share.weight + least - 1) / least;
  }
}

void FlowScheduler::remove(Flow& flow) {
  flow.scheduled.rotation->remove_if(
      [&flow](const Flow& each) { return &each == &flow; },
      [](Flow& each, std::size_t place) { each.scheduled.in_rotation = place; });
}

void FlowScheduler::remove_all_of(const EngineJob& job) {
  const auto leaves = [&job](const Share& known) { return known.job == &job; };
  const auto turn = shares_.begin() + static_cast<std::ptrdiff_t>(std::min(next_, shares_.size()));
  const auto before = static_cast<std::size_t>(std::count_if(shares_.begin(), turn, leaves));
  if (std::erase_if(shares_, leaves) == 0) return;
  next_ -= before;
  renew_quanta();
  awake_.clear();
  awake_.resize(shares_.size());
  short_.clear();
  short_.resize(shares_.size());
  for (std::size_t share = 0; share < shares_.size(); ++share) {
    if (shares_[share].any_awake()) {
      awake_.insert(share);
      short_.insert(share);
    }
    for (Lane& lane : shares_[share].lanes) {
      for (const auto& flows : lane.steps) {
        flows->for_each([share](Flow& flow) { flow.scheduled.share = share; });
      }
    }
  }
}

}  // namespace gradcube::dataplane
