#include "dataplane/daemon/hub_guests.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <variant>

#include "control/base/errors.h"
#include "control/hub/aggregator_plan.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

using control::HubCall;
using control::HubState;
using control::Instant;
using control::NodeMessage;
using control::NodeMessages;

HubGuests::HubGuests(bcube::ServerId server, const control::Topology& topology,
                     const aggregation::Kernels& kernels, const NodeEngines& engines,
                     DepartedSessions& departed, MemoryQuota* const& quota)
    : server_(server),
      topology_(topology),
      kernels_(kernels),
      engines_(engines),
      departed_(departed),
      quota_(quota) {}

HubGuests::~HubGuests() {
  for (auto& [name, guest] : guests_) drop(guest);
  // Who takes a server away does not wait for its threads.
  departed_.add(std::move(given_up_));
}

std::string HubGuests::name_of(const HubCall& call) const {
  return fmt::format("job \"{}\": its hub's aggregator, server {}", call.job,
                     topology_.space().text(server_));
}

void HubGuests::on_message(const NodeMessage& message, Instant now, NodeMessages& out) {
  if (const auto* call = std::get_if<HubCall>(&message.body)) {
    return on_call(message, *call, now, out);
  }
  const auto* part = std::get_if<control::HubPart>(&message.body);
  const auto* end = std::get_if<control::HubEnd>(&message.body);
  if (part == nullptr && end == nullptr) return;
  const auto found = guests_.find(part != nullptr ? part->hub : end->hub);
  if (found == guests_.end() || !found->second.fetch.is_of(message)) return;
  if (part != nullptr) return found->second.fetch.on_part(*part, now, out);
  drop(found->second);
  guests_.erase(found);
}

void HubGuests::on_call(const NodeMessage& message, const HubCall& call, Instant now,
                        NodeMessages& out) {
  const auto found = guests_.find(call.hub);
  if (found != guests_.end()) {
    if (!found->second.fetch.is_of(message)) return;
    found->second.fetch.on_call(now, out);
    return;
  }
  const auto refuse = [&](std::int32_t code, std::string why) {
    out.push_back(
        {server_, message.from, HubState{call.hub, HubState::Stage::failed, code, std::move(why)}});
  };
  if (call.stands) {
    return refuse(GRADCUBE_EPEER, name_of(call) + ", has been started anew: what it had is lost");
  }
  if (!takes_the_place_of_others(message, call)) return;
  if (guests_.size() >= kMost || table_bytes() + call.table_bytes > kMostTableBytes) {
    return refuse(GRADCUBE_EAGAIN,
                  fmt::format("{}, aggregates too many hubs: try again later", name_of(call)));
  }
  if (given_up_.size() >= kMostGivenUp) {
    return refuse(GRADCUBE_EAGAIN,
                  fmt::format("{}, is still making {} hubs that nobody waits for: try again later",
                              name_of(call), given_up_.size()));
  }
  Guest& guest = guests_.emplace(call.hub, Guest{{message, call, now}, nullptr}).first->second;
  guest.fetch.on_call(now, out);
}

// A job has one hub at a time, and one caller: an older one of it is over, though its end was lost.
bool HubGuests::takes_the_place_of_others(const NodeMessage& message, const HubCall& call) {
  if (message.from != call.members.front()) return false;
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    if (guest->first.job != call.hub.job) {
      ++guest;
      continue;
    }
    if (guest->first.number > call.hub.number || !guest->second.fetch.is_of(message)) return false;
    drop(guest->second);
    guest = guests_.erase(guest);
  }
  return true;
}

std::uint64_t HubGuests::table_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, guest] : guests_) bytes += guest.fetch.call().table_bytes;
  return bytes;
}

// Throws what cannot be done.
void HubGuests::begin(Guest& guest) const {
  const HubCall& call = guest.fetch.call();
  const auto members = control::Placement::of(topology_, call.members, name_of(call))
                           .with_trainers(call.trainers, name_of(call));
  ServerHubShape shape;
  shape.choice = std::make_shared<const control::PlanChoice>(
      control::hub::aggregated(topology_, members, server_, name_of(call)));
  shape.plan = &shape.choice->plan(0);
  shape.rank = shape.choice->placement().rank(server_).value();
  shape.aggregator = server_;
  shape.trainers = 0;
  shape.all_trainers = members.trainers();
  control::JobDescriptor job;
  job.id = call.hub.job;
  job.name = call.job;
  job.options.weight = call.weight;
  job.transport.window = call.window;
  job.epoch = call.epoch;
  const control::JoinRequest request{call.job, server_, {0, call.user}, job.options, std::nullopt};
  const std::string server = topology_.space().text(server_);
  guest.member = std::make_unique<Member>(request, server, engines_);
  guest.member->attach(job, kernels_);
  guest.member->start();
  guest.member->host_hub(
      {.job = call.job,
       .server = server,
       .number = call.hub.number,
       .table = HubTableSource(guest.fetch.take_table())},
      std::move(shape),
      quota_ == nullptr ? MemoryQuota::Charge() : MemoryQuota::Charge(*quota_, call.user));
}

void HubGuests::fail(Guest& guest, std::int32_t code, const std::string& why) {
  drop(guest);
  guest.fetch.set_state(HubState::Stage::failed, code, why);
}

void HubGuests::drop(Guest& guest) {
  if (guest.member == nullptr) return;
  if (guest.member->attached()) guest.member->detach();
  for (std::unique_ptr<HubMaking>& making : guest.member->take_dropped_hubs()) {
    given_up_.push_back(std::move(making));
  }
  guest.member->forget_hub();
  guest.member->release(departed_);
  guest.member.reset();
}

void HubGuests::on_event(const EngineEvent& event, NodeMessages& out) {
  if (event.kind != EngineEvent::Kind::hub_disagreement) return;
  for (auto& [name, guest] : guests_) {
    const bool is_its = name.job == event.job && guest.member != nullptr &&
                        static_cast<std::uint16_t>(guest.fetch.call().epoch) == event.epoch;
    if (!is_its || guest.member->hub() == nullptr) continue;
    const auto& keys = guest.member->hub()->model().keys();
    if (event.hub_key >= keys.size()) continue;
    guest.fetch.set_state(
        HubState::Stage::failed, GRADCUBE_EMISMATCH,
        describe_hub_disagreement(guest.fetch.call().job, keys[event.hub_key].name,
                                  topology_.space().text(server_)));
    guest.fetch.tell(out);
  }
}

std::vector<std::string> HubGuests::look(Instant now, NodeMessages& out) {
  std::vector<std::string> log;
  std::erase_if(given_up_, [](const auto& making) { return making->is_idle(); });
  for (auto& [name, guest] : guests_) {
    const HubCall& call = guest.fetch.call();
    const bool is_new = guest.fetch.state().stage == HubState::Stage::making;
    if (guest.member == nullptr && is_new && guest.fetch.has_table()) {
      try {
        begin(guest);
      } catch (const control::UsageError& error) {
        fail(guest, GRADCUBE_EINVAL, error.what());
      } catch (const std::exception& error) {
        fail(guest, GRADCUBE_ENOMEM, fmt::format("{}: {}", name_of(call), error.what()));
      }
      if (guest.member == nullptr) guest.fetch.tell(out);
    }
    if (guest.member == nullptr) continue;
    guest.member->give_back_packets();
    for (const HubAnswer& answer : guest.member->work_hub()) {
      if (answer.code != GRADCUBE_OK) {
        fail(guest, answer.code, answer.text);
      } else {
        guest.fetch.set_state(HubState::Stage::stands);
      }
      guest.fetch.tell(out);
      break;  // there is one, and a member that has failed is gone
    }
  }
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    if (!guest->second.fetch.is_forsaken(now)) {
      ++guest;
      continue;
    }
    log.push_back(fmt::format("{}, has heard nothing of its caller and frees the hub",
                              name_of(guest->second.fetch.call())));
    drop(guest->second);
    guest = guests_.erase(guest);
  }
  return log;
}

bool HubGuests::knows(protocol::JobId job) const {
  return std::any_of(guests_.begin(), guests_.end(),
                     [job](const auto& entry) { return entry.first.job == job; });
}

std::vector<HubFacts> HubGuests::facts() const {
  std::vector<HubFacts> all;
  for (const auto& [name, guest] : guests_) {
    const HubCall& call = guest.fetch.call();
    HubFacts& facts = all.emplace_back();
    facts.job = call.job;
    facts.id = name.job;
    facts.number = name.number;
    facts.aggregator = server_;
    facts.stage = guest.fetch.state().stage;
    facts.why = guest.fetch.state().why;
    facts.members = call.members;
    facts.trainers = call.trainers;
    facts.uid = call.user;
    if (guest.member == nullptr) continue;
    facts.reserved_bytes = guest.member->reserved_bytes();
    const ServerHub* hub = guest.member->hub();
    if (hub == nullptr) continue;
    facts.keys = hub->model().keys().size();
    facts.weights_bytes = hub->model().bytes();
    facts.memory_bytes = hub->charged();
  }
  return all;
}

}  // namespace gradcube::dataplane
