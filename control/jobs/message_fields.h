// The fields of every message between daemons, in their order in the byte form, with the rules that
// they obey. A ByteWriter and a ByteReader both follow this one list, so they cannot differ; the
// writer's messages are const.
//
// For message_codec.cc. docs/protocol.md, section 5, has the same list as a table.
#ifndef GRADCUBE_CONTROL_JOBS_MESSAGE_FIELDS_H_
#define GRADCUBE_CONTROL_JOBS_MESSAGE_FIELDS_H_

#include <algorithm>
#include <concepts>
#include <functional>
#include <limits>
#include <type_traits>
#include <variant>

#include "control/jobs/departures.h"
#include "control/jobs/message_codec.h"
#include "control/jobs/node_message.h"
#include "protocol/wire.h"
#include "trainer/shared_layout.h"

namespace gradcube::control {

// A message of one of these types, const or not.
template <typename T, typename... Messages>
concept Is = (std::same_as<std::remove_const_t<T>, Messages> || ...);

// What counts of 16 bits can say. Ascending lists of servers are shorter by themselves.
inline constexpr std::size_t kMostListed = std::numeric_limits<std::uint16_t>::max();

template <typename List, typename Key>
bool is_ascending(const List& list, Key key) {
  const auto not_below = [&](const auto& a, const auto& b) {
    return !(std::invoke(key, a) < std::invoke(key, b));
  };
  return std::adjacent_find(list.begin(), list.end(), not_below) == list.end();
}

void servers_field(auto& form, auto& servers) {
  form.list(servers, kMostListed, [&](auto& server) { form.server(server); });
  form.check(is_ascending(servers, std::identity()));
}

void lanes_field(auto& form, auto& numbers) {
  form.list(numbers, protocol::kMaxLanes, [&](auto& number) { form.number(number); });
}

void job_name_field(auto& form, auto& name) {
  form.name(name, shared::kJobNameBytes - 1);
  form.check(shared::is_job_name(name));
}

void text_field(auto& form, auto& text) { form.text(text, kLongestText); }

void fields(auto& form, Is<TrainerInfo> auto& trainer) {
  form.number(trainer.pid);
  form.number(trainer.uid);
}

void fields(auto& form, Is<TransportFacts> auto& transport) {
  form.number(transport.segment_bytes);
  form.number(transport.window);
  form.flag(transport.checksums);
  form.number(transport.key);
}

void fields(auto& form, Is<LaneOptions> auto& lane) {
  form.name(lane.algorithm, shared::kAlgorithmNameBytes - 1);
  form.number(lane.priority);
}

void fields(auto& form, Is<JobOptions> auto& options) {
  form.list(options.lanes, protocol::kMaxLanes, [&](auto& lane) { fields(form, lane); });
  form.check(!options.lanes.empty());
  form.number(options.weight);
  form.check(options.weight >= 1 && options.weight <= shared::kMostWeight);
  servers_field(form, options.members);
  form.flag(options.reproducible);
  form.number(options.trainers);
  form.check(options.trainers >= 1 && options.trainers <= shared::kMaxLocalTrainers);
}

void fields(auto& form, Is<JobMember> auto& member) {
  form.server(member.server);
  form.rank(member.rank);
  form.number(member.incarnation);
  form.number(member.attempt);
}

void fields(auto& form, Is<JobDescriptor> auto& job) {
  form.number(job.id);
  form.check(job.id != protocol::kNoJob);
  job_name_field(form, job.name);
  fields(form, job.options);
  form.flag(job.ranks_are_wished);
  form.list(job.members, kMostListed, [&](auto& member) { fields(form, member); });
  form.check(is_ascending(job.members, &JobMember::server));
  fields(form, job.transport);
  form.number(job.epoch);
}

void fields(auto& form, Is<CollectiveName> auto& collective) {
  form.small(collective.lane, protocol::kMaxLanes);
  form.number(collective.number);
}

void fields(auto& form, Is<Disagreement> auto& what) {
  form.small(what.lane, protocol::kMaxLanes);
  form.number(what.collective);
  form.number(what.code);
  text_field(form, what.text);
  form.choice(what.cause, Disagreement::Cause::departure);
}

void fields(auto& form, Is<JobCut> auto& cut) {
  lanes_field(form, cut.done);
  lanes_field(form, cut.failed);
  form.number(cut.code);
  text_field(form, cut.text);
}

void fields(auto& form, Is<Join> auto& join) {
  fields(form, join.trainer);
  fields(form, join.options);
  form.maybe(join.rank, [&](auto& rank) { form.rank(rank); });
  fields(form, join.transport);
  form.number(join.trainers);
}

void fields(auto& form, Is<Pending> auto& pending) { text_field(form, pending.missing); }

void fields(auto& form, Is<Refused> auto& refused) { text_field(form, refused.text); }

void fields(auto& form, Is<Elsewhere> auto& elsewhere) {
  fields(form, elsewhere.trainer);
  fields(form, elsewhere.options);
}

void fields(auto& form, Is<Prepare> auto& prepare) { fields(form, prepare.job); }

void fields(auto& form, Is<Armed, Start, Started> auto& message) { form.number(message.epoch); }

void fields(auto& form, Is<Disagree> auto& disagree) {
  form.number(disagree.epoch);
  fields(form, disagree.what);
}

void fields(auto& form, Is<Hold> auto& hold) {
  form.number(hold.epoch);
  text_field(form, hold.why);
  form.maybe(hold.asked, [&](auto& asked) { fields(form, asked); });
}

void fields(auto& form, Is<Held> auto& held) {
  form.number(held.epoch);
  lanes_field(form, held.published);
  lanes_field(form, held.completed);
  form.list(held.disagreements, protocol::kMaxLanes, [&](auto& what) { fields(form, what); });
  form.check(is_ascending(held.disagreements, &Disagreement::lane));
  form.maybe(held.asked, [&](auto& asked) { fields(form, asked); });
  text_field(form, held.submitted);
  lanes_field(form, held.reached);
  form.number(held.unanswered);
  form.number(held.segments);
}

void fields(auto& form, Is<Reset> auto& reset) {
  form.number(reset.epoch);
  fields(form, reset.cut);
}

void fields(auto& form, Is<Leave> auto& leave) {
  text_field(form, leave.how);
  form.flag(leave.died);
  form.number(leave.local);
  form.maybe(leave.submitted, [&](auto& submitted) { lanes_field(form, submitted); });
}

void fields(auto& form, Is<Departure> auto& departure) {
  form.server(departure.server);
  form.number(departure.local);
  text_field(form, departure.how);
  lanes_field(form, departure.submitted);
}

void fields(auto& form, Is<Left> auto& left) {
  form.number(left.first);
  form.list(left.departures, kMostDeparturesTold, [&](auto& each) { fields(form, each); });
}

void fields(auto& form, Is<Noted> auto& noted) { form.number(noted.departures); }

void fields(auto& form, Is<Abort> auto& abort) {
  text_field(form, abort.why);
  servers_field(form, abort.gone);
  form.maybe(abort.completed, [&](auto& completed) { lanes_field(form, completed); });
  form.maybe(abort.common, [&](auto& common) { lanes_field(form, common); });
  form.flag(abort.withdrawn);
}

void fields(auto&, Is<Seek, Unknown> auto&) {}

void fields(auto& form, Is<Ask> auto& ask) { form.number(ask.inquiry); }

void fields(auto& form, Is<Counts> auto& counts) {
  form.number(counts.inquiry);
  form.number(counts.pid);
  lanes_field(form, counts.published);
  lanes_field(form, counts.completed);
}

void fields(auto& form, Is<Greeting> auto& greeting) {
  form.number(greeting.incarnation);
  form.flag(greeting.hears_you);
}

void fields(auto& form, Is<Challenge, Response> auto& message) { form.number(message.nonce); }

void fields(auto& form, Is<StatusAsk> auto& ask) {
  form.number(ask.inquiry);
  form.small(ask.part, kMostStatusParts);
}

void fields(auto& form, Is<StatusPart> auto& status) {
  form.number(status.inquiry);
  form.small(status.part, kMostStatusParts);
  form.small(status.parts, kMostStatusParts + 1);
  form.check(status.part < status.parts);
  form.name(status.text, kStatusPartBytes);
}

void fields(auto& form, Is<HubName> auto& hub) {
  form.number(hub.job);
  form.check(hub.job != protocol::kNoJob);
  form.number(hub.number);
}

void fields(auto& form, Is<HubCall> auto& call) {
  fields(form, call.hub);
  form.number(call.nonce.high);
  form.number(call.nonce.low);
  form.number(call.key);
  form.number(call.epoch);
  job_name_field(form, call.job);
  servers_field(form, call.members);
  form.check(!call.members.empty());
  form.number(call.trainers);
  form.check(call.trainers >= 1 && call.trainers <= shared::kMaxLocalTrainers);
  form.number(call.weight);
  form.check(call.weight >= 1 && call.weight <= shared::kMostWeight);
  form.number(call.window);
  form.number(call.user);
  form.number(call.table_bytes);
  form.check(call.table_bytes >= 1 && call.table_bytes <= shared::kMostHubTableBytes);
  form.flag(call.stands);
}

void fields(auto& form, Is<HubAsk> auto& ask) {
  fields(form, ask.hub);
  form.number(ask.part);
  form.check(ask.part <= shared::kMostHubTableBytes / kHubPartBytes);
}

void fields(auto& form, Is<HubPart> auto& part) {
  fields(form, part.hub);
  form.number(part.part);
  form.check(part.part <= shared::kMostHubTableBytes / kHubPartBytes);
  form.name(part.bytes, kHubPartBytes);
}

void fields(auto& form, Is<HubState> auto& state) {
  fields(form, state.hub);
  form.choice(state.progress, HubState::Progress::failed);
  form.number(state.code);
  text_field(form, state.why);
}

void fields(auto& form, Is<HubEnd> auto& end) { fields(form, end.hub); }

void fields(auto& form, Is<JobEnd> auto& end) {
  form.server(end.server);
  form.number(end.incarnation);
  form.number(end.attempt);
}

void fields(auto& form, Is<JobMessage> auto& message) {
  fields(form, message.from);
  fields(form, message.to);
  form.number(message.job);
  job_name_field(form, message.name);
  form.number(message.owner.high);
  form.number(message.owner.low);
  form.one_of(message.body, [&](auto& body) { fields(form, body); });
}

void fields(auto& form, Is<NodeMessage> auto& message) {
  std::uint8_t format = kMessageFormat;
  form.number(format);
  form.check(format == kMessageFormat);
  form.server(message.from);
  form.server(message.to);
  form.check(message.from != message.to);
  form.one_of(message.body, [&](auto& body) { fields(form, body); });
  const auto* job_message = std::get_if<JobMessage>(&message.body);
  if (job_message == nullptr) return;
  form.check(job_message->from.server == message.from && job_message->to.server == message.to);
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MESSAGE_FIELDS_H_
