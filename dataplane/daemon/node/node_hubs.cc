// What a node tells its hubs (hub/node_hubs.h): which of its jobs they are about.

#include "dataplane/daemon/node/node.h"

namespace gradcube::dataplane {

HubJob Node::hub_job(JobGroup& group) const {
  Member& member = *group.member;
  return {group.attempt,    group.job,
          group.epoch,      group.descriptor.has_value() ? &*group.descriptor : nullptr,
          member.request(), member.plans(),
          member.window(),  member.hub()};
}

bool Node::ask_hub(TrainerId trainer, const shared::MakeHub& wish) {
  JobGroup* group = find(trainer.attempt);
  if (group == nullptr || !group->member->stays(trainer.local)) return true;
  return hubs_.ask(hub_job(*group), trainer.local,
                   group->member->session().shared_region(trainer.local), wish);
}

void Node::end_hub(TrainerId trainer, std::uint32_t number) {
  JobGroup* group = find(trainer.attempt);
  if (group != nullptr) group->member->hub().free(trainer.local, number);
}

std::shared_ptr<ServerHub> Node::hub_read_by(TrainerId trainer) {
  JobGroup* group = find(trainer.attempt);
  return group == nullptr ? nullptr : group->member->hub().read_by(trainer.local);
}

void Node::answer_hubs(control::Instant now) {
  for (auto& [attempt, group] : groups_) {
    const auto lost = hubs_.work(hub_job(group), now);
    if (lost.has_value()) lose_hub(group, *lost, now);
  }
}

// Nobody else has what its aggregator had.
void Node::lose_hub(const JobGroup& group, const std::string& why, control::Instant now) {
  const control::JobAgent* agent = jobs_.agent(group.attempt);
  if (agent == nullptr || agent->is_ending()) return;
  record(why);
  happened(group, control::event::TrainerAborted{why, true}, now);
}

}  // namespace gradcube::dataplane
