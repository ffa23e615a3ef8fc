// Hubs, as trainers ask a node for them.

#include <memory>
#include <utility>

#include "dataplane/daemon/node.h"
#include "dataplane/daemon/session_messages.h"

namespace gradcube::dataplane {

bool Node::ask_hub(TrainerId trainer, const shared::MakeHub& wish) {
  Resident* resident = find(trainer.attempt);
  if (resident == nullptr || !resident->member->stays(trainer.local)) return true;
  Member& member = *resident->member;
  std::shared_ptr<const SessionRegion> region = member.session().shared_region(trainer.local);
  const std::uint64_t confirmed = region->confirmed();
  if (wish.number == 0 || wish.bytes > shared::kMostHubTableBytes ||
      wish.offset < shared::kHeapOffset || wish.offset > confirmed ||
      wish.offset % shared::kBufferAlignment != 0 || wish.bytes > confirmed - wish.offset ||
      member.waits_for_hub(trainer.local)) {
    return false;
  }
  member.ask_hub(trainer.local,
                 {.job = member.request().name,
                  .server = space().text(server_),
                  .number = wish.number,
                  .lane = wish.lane,
                  .table = HubTableSource(std::move(region), wish.offset, wish.bytes)},
                 around_.topology);
  return true;
}

void Node::end_hub(TrainerId trainer, std::uint32_t number) {
  Resident* resident = find(trainer.attempt);
  if (resident != nullptr) resident->member->end_hub(trainer.local, number);
}

void Node::answer_hubs(control::Instant now) {
  for (auto& [attempt, resident] : residents_) {
    call_aggregator(attempt, resident, now);
    const auto is_whole = [&, &resident = resident](const ServerHub& hub) {
      return !calls_aggregator(resident, &hub) || has_aggregator(resident);
    };
    for (const HubAnswer& answer : resident.member->work_hub(is_whole)) {
      if (around_.channel == nullptr || !resident.member->stays(answer.local)) continue;
      shared::Notice notice = make_notice(shared::MessageType::hub_made, answer.code, answer.text);
      notice.number = answer.number;
      notice.request = answer.bytes;
      around_.channel->give_hub({server_, attempt, answer.local}, notice, answer.descriptor);
    }
  }
}

// Nobody can say which of them is wrong, and the round of the key would never end.
void Node::on_hub_disagreement(Attempt attempt, const Resident& resident, const EngineEvent& event,
                               control::Instant now) {
  const Member& member = *resident.member;
  if (member.hub() == nullptr) return;
  const auto& keys = member.hub()->model().keys();
  if (event.hub_key >= keys.size()) return;
  const std::string why = describe_hub_disagreement(member.request().name, keys[event.hub_key].name,
                                                    space().text(server_));
  happened(attempt, control::event::TrainerAborted{why, true}, now);
}

}  // namespace gradcube::dataplane
