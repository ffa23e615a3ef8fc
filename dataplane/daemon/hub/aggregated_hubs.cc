#include "dataplane/daemon/hub/aggregated_hubs.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>
#include <variant>

#include "control/base/errors.h"
#include "control/plan/base/placement.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

using control::HubCall;
using control::HubState;
using control::Instant;
using control::NodeMessage;
using control::NodeMessages;

std::string_view progress_name(control::HubState::Progress progress) {
  constexpr std::array<std::string_view, 3> kNames = {"making", "running", "failed"};
  return kNames.at(static_cast<std::size_t>(progress));
}

AggregatedHubs::AggregatedHubs(bcube::ServerId server, const HubSurroundings& around,
                               const NodeEngines& engines)
    : server_(server), around_(around), engines_(engines) {}

AggregatedHubs::Hosted::Hosted(const std::string& job, const std::string& server,
                               const NodeEngines& of)
    : session(std::make_unique<Session>(JobEngines::bells_of(of).listeners,
                                        JobEngines::bells_of(of).leader)),
      engines(job, server, plans, 0, of),
      hub(engines, *session) {}

AggregatedHubs::~AggregatedHubs() {
  for (auto& [name, each] : hubs_) drop(each);
  // Who takes a server away does not wait for its threads.
  around_.departed.add(std::move(given_up_));
}

std::string AggregatedHubs::name_of(const HubCall& call) const {
  return fmt::format("job \"{}\": its hub's aggregator, server {}", call.job,
                     around_.topology.space().text(server_));
}

void AggregatedHubs::on_message(const NodeMessage& message, Instant now, NodeMessages& out) {
  if (const auto* call = std::get_if<HubCall>(&message.body)) {
    return on_call(message, *call, now, out);
  }
  const auto* part = std::get_if<control::HubPart>(&message.body);
  const auto* end = std::get_if<control::HubEnd>(&message.body);
  if (part == nullptr && end == nullptr) return;
  const auto found = hubs_.find(part != nullptr ? part->hub : end->hub);
  if (found == hubs_.end() || !found->second.fetch.is_of(message)) return;
  if (part != nullptr) return found->second.fetch.on_part(*part, now, out);
  drop(found->second);
  hubs_.erase(found);
}

void AggregatedHubs::on_call(const NodeMessage& message, const HubCall& call, Instant now,
                             NodeMessages& out) {
  const auto found = hubs_.find(call.hub);
  if (found != hubs_.end()) {
    if (!found->second.fetch.is_of(message)) return;
    found->second.fetch.on_call(now, out);
    return;
  }
  const auto refuse = [&](std::int32_t code, std::string why) {
    out.push_back({server_, message.from,
                   HubState{call.hub, HubState::Progress::failed, code, std::move(why)}});
  };
  if (call.stands || was_made(call)) {
    return refuse(GRADCUBE_EPEER, name_of(call) + ", has been started anew: what it had is lost");
  }
  if (!takes_the_place_of_others(message, call)) return;
  if (!has_room_for(call)) {
    return refuse(
        GRADCUBE_EAGAIN,
        fmt::format("{}, aggregates too many hubs{}: try again later", name_of(call),
                    around_.share.is_divided
                        ? fmt::format(", or as many of user {} as it leaves for others", call.user)
                        : ""));
  }
  if (given_up_.size() >= kMostGivenUp) {
    return refuse(GRADCUBE_EAGAIN,
                  fmt::format("{}, is still making {} hubs that nobody waits for: try again later",
                              name_of(call), given_up_.size()));
  }
  const auto added = hubs_.emplace(call.hub, Aggregated{{message, call, now}, nullptr}).first;
  added->second.fetch.on_call(now, out);
}

// A job has one hub at a time, and one caller: an older one of it is over, though its end was lost.
bool AggregatedHubs::takes_the_place_of_others(const NodeMessage& message, const HubCall& call) {
  if (message.from != call.members.front()) return false;
  for (auto each = hubs_.begin(); each != hubs_.end();) {
    if (each->first.job != call.hub.job) {
      ++each;
      continue;
    }
    if (each->first.number > call.hub.number || !each->second.fetch.is_of(message)) return false;
    drop(each->second);
    each = hubs_.erase(each);
  }
  return true;
}

// Somebody may have kept frames of it.
bool AggregatedHubs::was_made(const HubCall& call) const {
  return std::ranges::find(made_, Made{call.hub, call.nonce}) != made_.end();
}

void AggregatedHubs::note_made(const HubCall& call) {
  made_.push_back({call.hub, call.nonce});
  if (made_.size() > kMostRemembered) made_.pop_front();
}

AggregatedHubs::Places AggregatedHubs::places(std::optional<std::uint32_t> user) const {
  Places places;
  for (const auto& [name, each] : hubs_) {
    const HubCall& call = each.fetch.call();
    if (user.has_value() && call.user != *user) continue;
    ++places.hubs;
    places.table_bytes += call.table_bytes;
  }
  return places;
}

bool AggregatedHubs::has_room_for(const HubCall& call) const {
  const Places all = places();
  const Places own = places(call.user);
  return around_.share.allows(kMost, all.hubs, own.hubs) &&
         around_.share.allows(kMostTableBytes, all.table_bytes, own.table_bytes, call.table_bytes);
}

// Throws what cannot be done.
void AggregatedHubs::begin(Aggregated& its) const {
  const HubCall& call = its.fetch.call();
  HubDesign design{.shape = {}, .topology = &around_.topology, .server = server_};
  design.members = control::Placement::of(around_.topology, call.members, name_of(call))
                       .with_trainers(call.trainers, name_of(call));
  design.shape.trainers = 0;
  design.shape.all_trainers = design.members->trainers();
  control::JobDescriptor job;
  job.id = call.hub.job;
  job.name = call.job;
  job.transport.window = call.window;
  job.transport.key = call.key;
  job.epoch = call.epoch;
  const std::string server = around_.topology.space().text(server_);
  its.hosted = std::make_unique<Hosted>(call.job, server, engines_);
  its.hosted->engines.attach(job, call.nonce, *its.hosted->session, call.weight, around_.kernels);
  its.hosted->engines.start();
  its.hosted->hub.host({.job = call.job,
                        .server = server,
                        .number = call.hub.number,
                        .table = HubTableSource(its.fetch.take_table()),
                        .threads = around_.threads},
                       std::move(design),
                       around_.quota == nullptr ? MemoryQuota::Charge()
                                                : MemoryQuota::Charge(*around_.quota, call.user));
}

void AggregatedHubs::fail(Aggregated& its, std::int32_t code, const std::string& why) {
  drop(its);
  its.fetch.set_state(HubState::Progress::failed, code, why);
}

void AggregatedHubs::halt(protocol::JobId job, control::Epoch epoch) {
  for (auto& [name, each] : hubs_) {
    if (name.job != job || each.fetch.call().epoch >= epoch || each.hosted == nullptr) continue;
    if (each.hosted->engines.attached()) each.hosted->engines.halt();
  }
}

void AggregatedHubs::drop_all_of(protocol::JobId job) {
  for (auto& [name, each] : hubs_) {
    if (name.job == job) drop(each);
  }
  std::erase_if(hubs_, [job](const auto& entry) { return entry.first.job == job; });
}

void AggregatedHubs::drop(Aggregated& its) {
  if (its.hosted == nullptr) return;
  Hosted& hosted = *its.hosted;
  if (hosted.engines.attached()) hosted.engines.detach();
  for (std::unique_ptr<UnfinishedWork>& making : hosted.hub.take_dropped()) {
    given_up_.push_back(std::move(making));
  }
  hosted.hub.forget();
  around_.departed.add(std::move(hosted.session), hosted.engines.release(), {});
  its.hosted.reset();
}

void AggregatedHubs::on_event(const EngineEvent& event, NodeMessages& out) {
  if (event.kind != EngineEvent::Kind::hub_disagreement) return;
  for (auto& [name, each] : hubs_) {
    const HubCall& call = each.fetch.call();
    const bool is_its = name.job == event.job && each.hosted != nullptr &&
                        static_cast<std::uint16_t>(call.epoch) == event.epoch;
    const std::string* key = is_its ? each.hosted->hub.key(event.hub_key) : nullptr;
    if (key == nullptr) continue;
    each.fetch.set_state(HubState::Progress::failed, GRADCUBE_EMISMATCH,
                         hub_disagreement(call.job, *key, around_.topology.space().text(server_)));
    each.fetch.tell(out);
  }
}

std::vector<std::string> AggregatedHubs::look(Instant now, NodeMessages& out) {
  std::vector<std::string> log;
  std::erase_if(given_up_, [](const auto& making) { return making->is_idle(); });
  for (auto& [name, each] : hubs_) {
    const bool is_new = each.fetch.state().progress == HubState::Progress::making;
    if (each.hosted == nullptr && is_new && each.fetch.has_table()) {
      try {
        begin(each);
        note_made(each.fetch.call());
      } catch (const control::UsageError& error) {
        fail(each, GRADCUBE_EINVAL, error.what());
      } catch (const std::exception& error) {
        fail(each, GRADCUBE_ENOMEM,
             fmt::format("{}: {}", name_of(each.fetch.call()), error.what()));
      }
      if (each.hosted == nullptr) each.fetch.tell(out);
    }
    if (each.hosted == nullptr) continue;
    each.hosted->engines.give_back_packets();
    for (const HubAnswer& answer : each.hosted->hub.work()) {
      if (answer.code != GRADCUBE_OK) {
        fail(each, answer.code, answer.text);
      } else {
        each.fetch.set_state(HubState::Progress::stands);
      }
      each.fetch.tell(out);
      break;  // there is one, and what has failed is gone
    }
  }
  for (auto each = hubs_.begin(); each != hubs_.end();) {
    if (!each->second.fetch.is_forsaken(now)) {
      ++each;
      continue;
    }
    log.push_back(fmt::format("{}, has heard nothing of its caller and frees the hub",
                              name_of(each->second.fetch.call())));
    drop(each->second);
    each = hubs_.erase(each);
  }
  return log;
}

std::vector<HubFacts> AggregatedHubs::facts() const {
  std::vector<HubFacts> all;
  for (const auto& [name, each] : hubs_) {
    HubFacts& facts = all.emplace_back(HubFacts{each.fetch.call(), each.fetch.state(), server_});
    if (each.hosted == nullptr) continue;
    facts.reserved_bytes = each.hosted->engines.reserved_bytes();
    const ServerHub* hub = each.hosted->hub.hub();
    if (hub == nullptr) continue;
    facts.keys = hub->model().keys().size();
    facts.weights_bytes = hub->model().bytes();
    facts.memory_bytes = hub->charged();
  }
  return all;
}

bool AggregatedHubs::knows(protocol::JobId job) const {
  return std::ranges::any_of(hubs_, [job](const auto& entry) { return entry.first.job == job; });
}

std::string hub_disagreement(const std::string& job, const std::string& key,
                             const std::string& server) {
  return fmt::format(
      "job \"{}\": the trainers have pushed key \"{}\" of their hub differently, as server {} has "
      "found: some pushed gradients and others weights, or their learning rates differ, or their "
      "first weights differ",
      job, key, server);
}

}  // namespace gradcube::dataplane
