// Hubs that a server without trainers aggregates: the caller's part of the node, and the guests'.

#include <utility>

#include "dataplane/daemon/node.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

void Node::on_hub_message(const control::NodeMessage& message, control::Instant now) {
  control::NodeMessages out;
  const auto* ask = std::get_if<control::HubAsk>(&message.body);
  const auto* state = std::get_if<control::HubState>(&message.body);
  const auto* call = std::get_if<control::HubCall>(&message.body);
  if (call != nullptr && resident_of(call->hub.job) != nullptr) return;  // no caller says so
  if (ask == nullptr && state == nullptr) {
    guests_.on_message(message, now, out);
  } else {
    const control::HubName& hub = ask != nullptr ? ask->hub : state->hub;
    for (auto& [attempt, resident] : residents_) {
      auto& caller = resident.caller;
      if (caller.has_value() && caller->hub() == hub) caller->on_message(message, now, out);
    }
  }
  send(out, now);
}

void Node::send(const control::NodeMessages& messages, control::Instant now) {
  for (const control::NodeMessage& message : messages) around_.messages.send(message, now);
}

// The first server of a job calls for all of them.
bool Node::calls_aggregator(const Resident& resident, const ServerHub* hub) const {
  return hub != nullptr && hub->shape().aggregator.has_value() &&
         resident.member->request().options.members.front() == server_;
}

bool Node::has_aggregator(const Resident& resident) {
  return resident.caller.has_value() && resident.caller->stands() &&
         !resident.caller->failure().has_value();
}

// Calls it as long as there is the hub. What becomes of the hub when it fails: before it stands
// there is none, and then the job has lost what nobody else has.
void Node::call_aggregator(Attempt attempt, Resident& resident, control::Instant now) {
  Member& member = *resident.member;
  const ServerHub* hub = member.hub();
  control::NodeMessages out;
  const bool calls = calls_aggregator(resident, hub);
  auto& caller = resident.caller;
  if (caller.has_value() && (!calls || caller->hub().number != hub->number())) {
    caller->end(out);
    caller.reset();
  }
  if (calls && !caller.has_value() && resident.descriptor.has_value()) {
    const control::JobOptions& options = member.request().options;
    const std::shared_ptr<const std::string>& table = member.hub_table();
    control::HubCall call;
    call.hub = {resident.job, hub->number()};
    call.epoch = resident.epoch;
    call.job = member.request().name;
    call.members = options.members;
    call.trainers = options.trainers;
    call.weight = options.weight;
    call.window = member.window();
    call.user = member.request().trainer.uid;
    call.table_bytes = static_cast<std::uint32_t>(table->size());
    const bcube::ServerId aggregator = *hub->shape().aggregator;
    caller.emplace(server_, aggregator, space().text(aggregator), std::move(call), table, now);
  }
  if (caller.has_value()) caller->on_time(now, out);
  send(out, now);
  if (!caller.has_value() || !caller->failure().has_value()) return;
  const control::HubCaller::Failure failure = *caller->failure();
  if (!caller->stands()) {
    member.refuse_hub(failure.code == 0 ? GRADCUBE_EPEER : failure.code, failure.why);
    return;
  }
  const control::JobAgent* agent = jobs_.agent(attempt);
  if (agent == nullptr || agent->is_ending()) return;
  record(failure.why);
  happened(attempt, control::event::TrainerAborted{failure.why, true}, now);
}

}  // namespace gradcube::dataplane
