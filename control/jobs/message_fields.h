// The fields of every message between daemons, in their order in the byte form, with the rules that
// they obey. A MessageForm follows this one list to write as to read, so the two cannot differ.
//
// A number, a flag, a text for the user, the numbers of lanes, and what may be missing of these are
// what their types say. All else is named here: servers and ranks, which are numbers too, what has
// a bound, and lists.
//
// For message_codec.cc. docs/protocol.md, section 5, has the same list as a table.
#ifndef GRADCUBE_CONTROL_JOBS_MESSAGE_FIELDS_H_
#define GRADCUBE_CONTROL_JOBS_MESSAGE_FIELDS_H_

#include <algorithm>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <variant>

#include "control/jobs/departures.h"
#include "control/jobs/message_codec.h"
#include "control/jobs/message_form.h"
#include "control/jobs/node_message.h"
#include "protocol/wire.h"
#include "trainer/shared_layout.h"

namespace gradcube::control {

// A message of one of these types.
template <typename T, typename... Messages>
concept Is = (std::same_as<T, Messages> || ...);

// What counts of 16 bits can say. Ascending lists of servers are shorter by themselves.
inline constexpr std::size_t kMostListed = std::numeric_limits<std::uint16_t>::max();

template <typename List, typename Key>
bool is_ascending(const List& list, Key key) {
  const auto not_below = [&](const auto& a, const auto& b) {
    return !(std::invoke(key, a) < std::invoke(key, b));
  };
  return std::ranges::adjacent_find(list, not_below) == list.end();
}

void servers_field(MessageForm& form, auto& servers) {
  form.list(servers, kMostListed, [&](auto& server) { form.server(server); });
  form.check(is_ascending(servers, std::identity()));
}

void job_name_field(MessageForm& form, auto& name) {
  form.name(name, shared::kJobNameBytes - 1);
  form.check(shared::is_job_name(name));
}

// What their types say ------------------------------------------------------

void fields(MessageForm& form, Is<bool> auto& flag) { form.flag(flag); }

template <typename T>
requires std::integral<T> &&(!Is<T, bool>)void fields(MessageForm& form, T& number) {
  form.number(number);
}

void fields(MessageForm& form, Is<std::string> auto& text) { form.text(text, kLongestText); }

void fields(MessageForm& form, Is<LaneNumbers> auto& numbers) {
  form.list(numbers, protocol::kMaxLanes, [&](auto& number) { form.number(number); });
}

void fields(MessageForm& form,
            Is<std::optional<LaneNumbers>, std::optional<CollectiveName>> auto& one) {
  form.maybe(one, [&](auto& value) { fields(form, value); });
}

void fields(MessageForm& form, auto& first, auto& second, auto&... more) {
  fields(form, first);
  fields(form, second);
  (fields(form, more), ...);
}

// Parts of messages ---------------------------------------------------------

void fields(MessageForm& form, Is<TrainerInfo> auto& trainer) {
  fields(form, trainer.pid, trainer.uid);
}

void fields(MessageForm& form, Is<TransportFacts> auto& transport) {
  fields(form, transport.segment_bytes, transport.window, transport.checksums, transport.key);
}

void fields(MessageForm& form, Is<LaneOptions> auto& lane) {
  form.name(lane.algorithm, shared::kAlgorithmNameBytes - 1);
  form.number(lane.priority);
}

void fields(MessageForm& form, Is<JobOptions> auto& options) {
  form.list(options.lanes, protocol::kMaxLanes, [&](auto& lane) { fields(form, lane); });
  form.check(!options.lanes.empty());
  form.number(options.weight);
  form.check(options.weight >= 1 && options.weight <= shared::kMostWeight);
  servers_field(form, options.members);
  fields(form, options.reproducible, options.trainers);
  form.check(options.trainers >= 1 && options.trainers <= shared::kMaxLocalTrainers);
}

void fields(MessageForm& form, Is<JobMember> auto& member) {
  form.server(member.server);
  form.rank(member.rank);
  fields(form, member.incarnation, member.attempt);
}

void fields(MessageForm& form, Is<JobDescriptor> auto& job) {
  form.number(job.id);
  form.check(job.id != protocol::kNoJob);
  job_name_field(form, job.name);
  fields(form, job.options, job.ranks_are_wished);
  form.list(job.members, kMostListed, [&](auto& member) { fields(form, member); });
  form.check(is_ascending(job.members, &JobMember::server));
  fields(form, job.transport, job.epoch);
}

void fields(MessageForm& form, Is<CollectiveName> auto& collective) {
  form.small(collective.lane, protocol::kMaxLanes);
  form.number(collective.number);
}

void fields(MessageForm& form, Is<Disagreement> auto& what) {
  form.small(what.lane, protocol::kMaxLanes);
  fields(form, what.collective, what.code, what.text);
  form.choice(what.cause, Disagreement::Cause::departure);
}

void fields(MessageForm& form, Is<JobCut> auto& cut) {
  fields(form, cut.done, cut.failed, cut.code, cut.text);
}

void fields(MessageForm& form, Is<Departure> auto& departure) {
  form.server(departure.server);
  fields(form, departure.local, departure.how, departure.submitted);
}

void fields(MessageForm& form, Is<HubName> auto& hub) {
  form.number(hub.job);
  form.check(hub.job != protocol::kNoJob);
  form.number(hub.number);
}

void fields(MessageForm& form, Is<JobEnd> auto& end) {
  form.server(end.server);
  fields(form, end.incarnation, end.attempt);
}

// Of a job ------------------------------------------------------------------

void fields(MessageForm& form, Is<Join> auto& join) {
  fields(form, join.trainer, join.options);
  form.maybe(join.rank, [&](auto& rank) { form.rank(rank); });
  fields(form, join.transport, join.trainers);
}

void fields(MessageForm& form, Is<Pending> auto& pending) { fields(form, pending.missing); }

void fields(MessageForm& form, Is<Refused> auto& refused) { fields(form, refused.text); }

void fields(MessageForm& form, Is<Elsewhere> auto& elsewhere) {
  fields(form, elsewhere.trainer, elsewhere.options);
}

void fields(MessageForm& form, Is<Prepare> auto& prepare) { fields(form, prepare.job); }

void fields(MessageForm& form, Is<Armed, Start, Started> auto& message) {
  form.number(message.epoch);
}

void fields(MessageForm& form, Is<Disagree> auto& disagree) {
  fields(form, disagree.epoch, disagree.what);
}

void fields(MessageForm& form, Is<Hold> auto& hold) {
  fields(form, hold.epoch, hold.why, hold.asked);
}

void fields(MessageForm& form, Is<Held> auto& held) {
  fields(form, held.epoch, held.published, held.completed);
  form.list(held.disagreements, protocol::kMaxLanes, [&](auto& what) { fields(form, what); });
  form.check(is_ascending(held.disagreements, &Disagreement::lane));
  fields(form, held.asked, held.submitted, held.reached, held.unanswered, held.segments);
}

void fields(MessageForm& form, Is<Reset> auto& reset) { fields(form, reset.epoch, reset.cut); }

void fields(MessageForm& form, Is<Leave> auto& leave) {
  fields(form, leave.how, leave.died, leave.local, leave.submitted);
}

void fields(MessageForm& form, Is<Left> auto& left) {
  form.number(left.first);
  form.list(left.departures, kMostDeparturesTold, [&](auto& each) { fields(form, each); });
}

void fields(MessageForm& form, Is<Noted> auto& noted) { form.number(noted.departures); }

void fields(MessageForm& form, Is<Abort> auto& abort) {
  form.text(abort.why, kLongestText);
  servers_field(form, abort.gone);
  fields(form, abort.completed, abort.common, abort.withdrawn);
}

void fields(MessageForm&, Is<Seek, Unknown> auto&) {}

void fields(MessageForm& form, Is<Ask> auto& ask) { form.number(ask.inquiry); }

void fields(MessageForm& form, Is<Counts> auto& counts) {
  fields(form, counts.inquiry, counts.pid, counts.published, counts.completed);
}

void fields(MessageForm& form, Is<JobMessage> auto& message) {
  fields(form, message.from, message.to, message.job);
  job_name_field(form, message.name);
  fields(form, message.owner.high, message.owner.low);
  form.one_of(message.body, [&](auto& body) { fields(form, body); });
}

// Of daemons, statuses and hubs ---------------------------------------------

void fields(MessageForm& form, Is<Greeting> auto& greeting) {
  fields(form, greeting.incarnation, greeting.hears_you);
}

void fields(MessageForm& form, Is<Challenge, Response> auto& message) {
  form.number(message.nonce);
}

void fields(MessageForm& form, Is<StatusAsk> auto& ask) {
  form.number(ask.inquiry);
  form.small(ask.part, kMostStatusParts);
}

void fields(MessageForm& form, Is<StatusPart> auto& status) {
  form.number(status.inquiry);
  form.small(status.part, kMostStatusParts);
  form.small(status.parts, kMostStatusParts + 1);
  form.check(status.part < status.parts);
  form.name(status.text, kStatusPartBytes);
}

void fields(MessageForm& form, Is<HubCall> auto& call) {
  fields(form, call.hub, call.nonce.high, call.nonce.low, call.key, call.epoch);
  job_name_field(form, call.job);
  servers_field(form, call.members);
  form.check(!call.members.empty());
  form.number(call.trainers);
  form.check(call.trainers >= 1 && call.trainers <= shared::kMaxLocalTrainers);
  form.number(call.weight);
  form.check(call.weight >= 1 && call.weight <= shared::kMostWeight);
  fields(form, call.window, call.user, call.table_bytes);
  form.check(call.table_bytes >= 1 && call.table_bytes <= shared::kMostHubTableBytes);
  form.flag(call.stands);
}

void fields(MessageForm& form, Is<HubAsk> auto& ask) {
  fields(form, ask.hub, ask.part);
  form.check(ask.part <= shared::kMostHubTableBytes / kHubPartBytes);
}

void fields(MessageForm& form, Is<HubPart> auto& part) {
  fields(form, part.hub, part.part);
  form.check(part.part <= shared::kMostHubTableBytes / kHubPartBytes);
  form.name(part.bytes, kHubPartBytes);
}

void fields(MessageForm& form, Is<HubState> auto& state) {
  fields(form, state.hub);
  form.choice(state.progress, HubState::Progress::failed);
  fields(form, state.code, state.why);
}

void fields(MessageForm& form, Is<HubEnd> auto& end) { fields(form, end.hub); }

void fields(MessageForm& form, Is<NodeMessage> auto& message) {
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
