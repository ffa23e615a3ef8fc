#include "dataplane/daemon/hub/node_hubs.h"

#include <utility>

#include "dataplane/daemon/trainers/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

NodeHubs::NodeHubs(bcube::ServerId server, const HubSurroundings& around,
                   const NodeEngines& engines, TrainerChannel*& channel, Send send)
    : server_(server),
      around_(around),
      channel_(channel),
      send_(std::move(send)),
      aggregated_(server, around, engines) {}

bool NodeHubs::ask(const HubJob& job, unsigned local, std::shared_ptr<const SessionRegion> region,
                   const shared::MakeHub& wish) const {
  const std::uint64_t confirmed = region->confirmed();
  if (wish.number == 0 || wish.bytes > shared::kMostHubTableBytes ||
      wish.offset < shared::kHeapOffset || wish.offset > confirmed ||
      wish.offset % shared::kBufferAlignment != 0 || wish.bytes > confirmed - wish.offset ||
      job.hub.waits(local)) {
    return false;
  }
  job.hub.ask(local,
              {.job = job.request.name,
               .server = around_.topology.space().text(server_),
               .number = wish.number,
               .lane = wish.lane,
               .table = HubTableSource(std::move(region), wish.offset, wish.bytes),
               .threads = around_.threads},
              job.plans, job.request.options.all_trainers(), around_.topology);
  return true;
}

std::optional<std::string> NodeHubs::work(const HubJob& job, control::Instant now) {
  std::optional<std::string> lost = call_aggregator(job, now);
  const auto is_whole = [&](const ServerHub& hub) {
    if (!calls_aggregator(job, &hub)) return true;
    const auto caller = callers_.find(job.attempt);
    return caller != callers_.end() && caller->second.stands() &&
           !caller->second.failure().has_value();
  };
  for (const HubAnswer& answer : job.hub.work(is_whole)) {
    if (channel_ == nullptr) continue;
    shared::Notice notice = make_notice(shared::MessageType::hub_made, answer.code, answer.text);
    notice.number = answer.number;
    notice.epoch = job.epoch;
    notice.request = answer.bytes;
    channel_->give_hub({server_, job.attempt, answer.local}, notice, answer.descriptor);
  }
  return lost;
}

void NodeHubs::forget(control::Attempt attempt, control::Instant now) {
  const auto caller = callers_.find(attempt);
  if (caller == callers_.end()) return;
  control::NodeMessages out;
  caller->second.end(out);
  callers_.erase(caller);
  send(out, now);
}

void NodeHubs::on_message(const control::NodeMessage& message, control::Instant now) {
  control::NodeMessages out;
  const auto* ask = std::get_if<control::HubAsk>(&message.body);
  const auto* state = std::get_if<control::HubState>(&message.body);
  if (ask == nullptr && state == nullptr) {
    aggregated_.on_message(message, now, out);
  } else {
    const control::HubName& hub = ask != nullptr ? ask->hub : state->hub;
    for (auto& [attempt, caller] : callers_) {
      if (caller.hub() == hub) caller.on_message(message, now, out);
    }
  }
  send(out, now);
}

void NodeHubs::on_event(const EngineEvent& event, control::Instant now) {
  control::NodeMessages out;
  aggregated_.on_event(event, out);
  send(out, now);
}

std::vector<std::string> NodeHubs::look(control::Instant now) {
  control::NodeMessages out;
  std::vector<std::string> log = aggregated_.look(now, out);
  send(out, now);
  return log;
}

void NodeHubs::send(const control::NodeMessages& messages, control::Instant now) const {
  for (const control::NodeMessage& message : messages) send_(message, now);
}

// The first server of a job calls for all of them.
bool NodeHubs::calls_aggregator(const HubJob& job, const ServerHub* hub) const {
  return hub != nullptr && hub->shape().aggregator.has_value() &&
         job.request.options.members.front() == server_;
}

// Calls it as long as there is the hub. What becomes of the hub when it fails: before it stands
// there is none, and then the job has lost what nobody else has.
std::optional<std::string> NodeHubs::call_aggregator(const HubJob& job, control::Instant now) {
  const ServerHub* hub = job.hub.hub();
  const bool calls = calls_aggregator(job, hub);
  auto caller = callers_.find(job.attempt);
  if (caller != callers_.end() && (!calls || caller->second.hub().number != hub->number())) {
    forget(job.attempt, now);
    caller = callers_.end();
  }
  if (calls && caller == callers_.end()) {
    const control::JobOptions& options = job.request.options;
    const std::shared_ptr<const std::string>& table = job.hub.table();
    control::HubCall call;
    call.hub = {job.id, hub->number()};
    if (job.descriptor != nullptr) {
      call.nonce = control::job_nonce(*job.descriptor);
      call.key = job.descriptor->transport.key;
    }
    call.epoch = job.epoch;
    call.job = job.request.name;
    call.members = options.members;
    call.trainers = options.trainers;
    call.weight = options.weight;
    call.window = job.window;
    call.user = job.request.trainer.uid;
    call.table_bytes = static_cast<std::uint32_t>(table->size());
    const bcube::ServerId aggregator = *hub->shape().aggregator;
    caller =
        callers_
            .try_emplace(job.attempt, server_, aggregator,
                         around_.topology.space().text(aggregator), std::move(call), table, now)
            .first;
  }
  if (caller == callers_.end()) return std::nullopt;
  control::NodeMessages out;
  caller->second.on_time(now, out);
  send(out, now);
  if (!caller->second.failure().has_value()) return std::nullopt;
  const control::HubCaller::Failure& failure = *caller->second.failure();
  if (caller->second.stands()) return failure.why;
  job.hub.lose(failure.code == 0 ? GRADCUBE_EPEER : failure.code, failure.why, 0);
  return std::nullopt;
}

}  // namespace gradcube::dataplane
