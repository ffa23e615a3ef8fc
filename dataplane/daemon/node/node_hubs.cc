// A node's hubs: those of its trainers' jobs, and those that it aggregates for others
// (hub/aggregated_hubs.h). Where a job's hub has aggregators, the job's first server calls each of
// them, and watches over them as long as there is the hub (control/jobs/hub/hub_caller.h).

#include <algorithm>
#include <utility>
#include <vector>

#include "dataplane/daemon/node/node.h"
#include "dataplane/daemon/trainers/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

bool all_stand(const std::vector<control::HubCaller>& callers) {
  return std::ranges::all_of(callers, &control::HubCaller::stands);
}

bool has_failed(const control::HubCaller& caller) { return caller.failure().has_value(); }

}  // namespace

bool Node::ask_hub(TrainerId trainer, const shared::MakeHub& wish) {
  JobGroup* group = find(trainer.attempt);
  if (group == nullptr || !group->member->stays(trainer.local)) return true;
  Member& member = *group->member;
  std::shared_ptr<const SessionRegion> region = member.session().shared_region(trainer.local);
  const std::uint64_t confirmed = region->confirmed();
  if (wish.number == 0 || wish.bytes > shared::kMostHubTableBytes ||
      wish.offset < shared::kHeapOffset || wish.offset > confirmed ||
      wish.offset % shared::kBufferAlignment != 0 || wish.bytes > confirmed - wish.offset ||
      member.hub().waits(trainer.local)) {
    return false;
  }
  member.hub().ask(trainer.local,
                   {.job = member.request().name,
                    .server = space().text(server_),
                    .number = wish.number,
                    .lane = wish.lane,
                    .table = HubTableSource(std::move(region), wish.offset, wish.bytes),
                    .threads = around_.threads},
                   member.plans(), member.request().options.all_trainers(), around_.topology);
  return true;
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
    const std::optional<std::string> lost = call_aggregators(group, now);
    const auto is_whole = [&group = group, this](const ServerHub& hub) {
      const auto& callers = group.hub_callers;
      return !calls_aggregators(group, &hub) ||
             (!callers.empty() && all_stand(callers) && std::ranges::none_of(callers, has_failed));
    };
    for (const HubAnswer& answer : group.member->hub().work(is_whole)) {
      if (around_.channel == nullptr) continue;
      shared::Notice notice = make_notice(shared::MessageType::hub_made, answer.code, answer.text);
      notice.number = answer.number;
      notice.epoch = group.epoch;
      notice.request = answer.bytes;
      around_.channel->give_hub({server_, attempt, answer.local}, notice, answer.descriptor);
    }
    if (lost.has_value()) lose_hub(group, *lost, now);
  }
}

// The first server of a job calls for all of them.
bool Node::calls_aggregators(const JobGroup& group, const ServerHub* hub) const {
  return hub != nullptr && !hub->shape().aggregators.empty() &&
         group.member->request().options.members.front() == server_;
}

// Calls them as long as there is the hub. What becomes of the hub when one fails: before all stand
// there is none, and then the job has lost what nobody else has: why, if it has.
std::optional<std::string> Node::call_aggregators(JobGroup& group, control::Instant now) {
  const ServerHub* hub = group.member->hub().hub();
  const bool calls = calls_aggregators(group, hub);
  std::vector<control::HubCaller>& callers = group.hub_callers;
  if (!callers.empty() && (!calls || callers.front().hub().number != hub->number())) {
    end_calls(group, now);
    callers.clear();
  }
  if (!calls) return std::nullopt;
  if (callers.empty()) begin_calls(group, *hub, now);
  control::NodeMessages out;
  for (control::HubCaller& caller : callers) caller.on_time(now, out);
  send_all(out, now);
  const auto failed = std::ranges::find_if(callers, has_failed);
  if (failed == callers.end()) return std::nullopt;
  const control::HubCaller::Failure& failure = *failed->failure();
  if (all_stand(callers)) return failure.why;
  group.member->hub().lose(failure.code == 0 ? GRADCUBE_EPEER : failure.code, failure.why, 0);
  return std::nullopt;
}

void Node::begin_calls(JobGroup& group, const ServerHub& hub, control::Instant now) {
  const Member& member = *group.member;
  const control::JobOptions& options = member.request().options;
  const std::shared_ptr<const std::string>& table = group.member->hub().table();
  control::HubCall call;
  call.hub = {group.job, hub.number()};
  if (group.descriptor.has_value()) {
    call.nonce = control::job_nonce(*group.descriptor);
    call.key = group.descriptor->transport.key;
  }
  call.epoch = group.epoch;
  call.job = member.request().name;
  call.members = options.members;
  call.trainers = options.trainers;
  call.weight = options.weight;
  call.window = member.window();
  call.user = member.request().trainer.uid;
  call.table_bytes = static_cast<std::uint32_t>(table->size());
  for (const bcube::ServerId aggregator : hub.shape().aggregators) {
    group.hub_callers.emplace_back(server_, aggregator, space().text(aggregator), call, table, now);
  }
}

void Node::end_calls(const JobGroup& group, control::Instant now) {
  control::NodeMessages out;
  for (const control::HubCaller& caller : group.hub_callers) caller.end(out);
  send_all(out, now);
}

// Of hubs here and there.
void Node::on_hub_message(const control::NodeMessage& message, control::Instant now) {
  // No caller calls a server with trainers of its job.
  const auto* call = std::get_if<control::HubCall>(&message.body);
  if (call != nullptr && running_group(call->hub.job) != nullptr) return;
  control::NodeMessages out;
  const auto* ask = std::get_if<control::HubAsk>(&message.body);
  const auto* state = std::get_if<control::HubState>(&message.body);
  if (ask == nullptr && state == nullptr) {
    aggregated_.on_message(message, now, out);
  } else {
    const control::HubName& hub = ask != nullptr ? ask->hub : state->hub;
    for (auto& [attempt, group] : groups_) {
      for (control::HubCaller& caller : group.hub_callers) {
        if (caller.hub() == hub) caller.on_message(message, now, out);
      }
    }
  }
  send_all(out, now);
}

// Nobody else has what its aggregator had.
void Node::lose_hub(const JobGroup& group, const std::string& why, control::Instant now) {
  const control::JobAgent* agent = jobs_.agent(group.attempt);
  if (agent == nullptr || agent->is_ending()) return;
  record(why);
  happened(group, control::event::TrainerAborted{why, true}, now);
}

}  // namespace gradcube::dataplane
