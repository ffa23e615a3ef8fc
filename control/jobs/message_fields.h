// The fields of every message between daemons, in their order in the byte form, with the rules that
// they obey. A ByteWriter and a ByteReader both follow this one list, so they cannot differ: for
// the writer `Of<Form, T>` is const T, for the reader T.
//
// For message_codec.cc. docs/protocol.md, section 5, has the same list as a table.
#ifndef GRADCUBE_CONTROL_JOBS_MESSAGE_FIELDS_H_
#define GRADCUBE_CONTROL_JOBS_MESSAGE_FIELDS_H_

#include <algorithm>
#include <functional>
#include <limits>
#include <variant>

#include "control/jobs/departures.h"
#include "control/jobs/message_codec.h"
#include "control/jobs/node_message.h"
#include "protocol/wire.h"
#include "trainer/shared_layout.h"

namespace gradcube::control {

template <typename Form, typename T>
using Of = typename Form::template Field<T>;

// What counts of 16 bits can say. Ascending lists of servers are shorter by themselves.
inline constexpr std::size_t kMostListed = std::numeric_limits<std::uint16_t>::max();

template <typename List, typename Key>
bool is_ascending(const List& list, Key key) {
  const auto not_below = [&](const auto& a, const auto& b) {
    return !(std::invoke(key, a) < std::invoke(key, b));
  };
  return std::adjacent_find(list.begin(), list.end(), not_below) == list.end();
}

template <typename Form>
void servers_field(Form& form, Of<Form, std::vector<bcube::ServerId>>& servers) {
  form.list(servers, kMostListed, [&](auto& server) { form.server(server); });
  form.check(is_ascending(servers, std::identity()));
}

template <typename Form>
void lanes_field(Form& form, Of<Form, LaneNumbers>& numbers) {
  form.list(numbers, protocol::kMaxLanes, [&](auto& number) { form.number(number); });
}

template <typename Form>
void job_name_field(Form& form, Of<Form, std::string>& name) {
  form.name(name, shared::kJobNameBytes - 1);
  form.check(shared::is_job_name(name));
}

template <typename Form>
void text_field(Form& form, Of<Form, std::string>& text) {
  form.text(text, kLongestText);
}

template <typename Form>
void fields(Form& form, Of<Form, TrainerInfo>& trainer) {
  form.number(trainer.pid);
  form.number(trainer.uid);
}

template <typename Form>
void fields(Form& form, Of<Form, TransportFacts>& transport) {
  form.number(transport.segment_bytes);
  form.number(transport.window);
  form.flag(transport.checksums);
  form.number(transport.key);
}

template <typename Form>
void fields(Form& form, Of<Form, LaneOptions>& lane) {
  form.name(lane.algorithm, shared::kAlgorithmNameBytes - 1);
  form.number(lane.priority);
}

template <typename Form>
void fields(Form& form, Of<Form, JobOptions>& options) {
  form.list(options.lanes, protocol::kMaxLanes, [&](auto& lane) { fields(form, lane); });
  form.check(!options.lanes.empty());
  form.number(options.weight);
  form.check(options.weight >= 1 && options.weight <= shared::kMostWeight);
  servers_field(form, options.members);
  form.flag(options.reproducible);
  form.number(options.trainers);
  form.check(options.trainers >= 1 && options.trainers <= shared::kMaxLocalTrainers);
}

template <typename Form>
void fields(Form& form, Of<Form, JobMember>& member) {
  form.server(member.server);
  form.rank(member.rank);
  form.number(member.incarnation);
  form.number(member.attempt);
}

template <typename Form>
void fields(Form& form, Of<Form, JobDescriptor>& job) {
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

template <typename Form>
void fields(Form& form, Of<Form, CollectiveName>& collective) {
  form.small(collective.lane, protocol::kMaxLanes);
  form.number(collective.number);
}

template <typename Form>
void fields(Form& form, Of<Form, Disagreement>& what) {
  form.small(what.lane, protocol::kMaxLanes);
  form.number(what.collective);
  form.number(what.code);
  text_field(form, what.text);
  form.choice(what.cause, Disagreement::Cause::departure);
}

template <typename Form>
void fields(Form& form, Of<Form, JobCut>& cut) {
  lanes_field(form, cut.done);
  lanes_field(form, cut.failed);
  form.number(cut.code);
  text_field(form, cut.text);
}

template <typename Form>
void fields(Form& form, Of<Form, Join>& join) {
  fields(form, join.trainer);
  fields(form, join.options);
  form.maybe(join.rank, [&](auto& rank) { form.rank(rank); });
  fields(form, join.transport);
  form.number(join.trainers);
}

template <typename Form>
void fields(Form& form, Of<Form, Pending>& pending) {
  text_field(form, pending.missing);
}

template <typename Form>
void fields(Form& form, Of<Form, Refused>& refused) {
  text_field(form, refused.text);
}

template <typename Form>
void fields(Form&, Of<Form, Seek>&) {}

template <typename Form>
void fields(Form& form, Of<Form, Elsewhere>& elsewhere) {
  fields(form, elsewhere.trainer);
  fields(form, elsewhere.options);
}

template <typename Form>
void fields(Form& form, Of<Form, Prepare>& prepare) {
  fields(form, prepare.job);
}

template <typename Form>
void fields(Form& form, Of<Form, Armed>& armed) {
  form.number(armed.epoch);
}

template <typename Form>
void fields(Form& form, Of<Form, Start>& start) {
  form.number(start.epoch);
}

template <typename Form>
void fields(Form& form, Of<Form, Started>& started) {
  form.number(started.epoch);
}

template <typename Form>
void fields(Form& form, Of<Form, Disagree>& disagree) {
  form.number(disagree.epoch);
  fields(form, disagree.what);
}

template <typename Form>
void fields(Form& form, Of<Form, Hold>& hold) {
  form.number(hold.epoch);
  text_field(form, hold.why);
  form.maybe(hold.asked, [&](auto& asked) { fields(form, asked); });
}

template <typename Form>
void fields(Form& form, Of<Form, Held>& held) {
  form.number(held.epoch);
  lanes_field(form, held.published);
  lanes_field(form, held.completed);
  form.list(held.disagreements, protocol::kMaxLanes, [&](auto& what) { fields(form, what); });
  form.check(is_ascending(held.disagreements, &Disagreement::lane));
  form.maybe(held.asked, [&](auto& asked) { fields(form, asked); });
  text_field(form, held.submitted);
  lanes_field(form, held.reached);
  form.number(held.unanswered);
}

template <typename Form>
void fields(Form& form, Of<Form, Reset>& reset) {
  form.number(reset.epoch);
  fields(form, reset.cut);
}

template <typename Form>
void fields(Form& form, Of<Form, Leave>& leave) {
  text_field(form, leave.how);
  form.flag(leave.died);
  form.number(leave.local);
  form.maybe(leave.submitted, [&](auto& submitted) { lanes_field(form, submitted); });
}

template <typename Form>
void fields(Form& form, Of<Form, Departure>& departure) {
  form.server(departure.server);
  form.number(departure.local);
  text_field(form, departure.how);
  lanes_field(form, departure.submitted);
}

template <typename Form>
void fields(Form& form, Of<Form, Left>& left) {
  form.number(left.first);
  form.list(left.departures, kMostDeparturesTold, [&](auto& each) { fields(form, each); });
}

template <typename Form>
void fields(Form& form, Of<Form, Noted>& noted) {
  form.number(noted.departures);
}

template <typename Form>
void fields(Form& form, Of<Form, Abort>& abort) {
  text_field(form, abort.why);
  servers_field(form, abort.gone);
  form.maybe(abort.completed, [&](auto& completed) { lanes_field(form, completed); });
  form.maybe(abort.common, [&](auto& common) { lanes_field(form, common); });
  form.flag(abort.withdrawn);
}

template <typename Form>
void fields(Form&, Of<Form, Unknown>&) {}

template <typename Form>
void fields(Form& form, Of<Form, Ask>& ask) {
  form.number(ask.inquiry);
}

template <typename Form>
void fields(Form& form, Of<Form, Counts>& counts) {
  form.number(counts.inquiry);
  form.number(counts.pid);
  lanes_field(form, counts.published);
  lanes_field(form, counts.completed);
}

template <typename Form>
void fields(Form& form, Of<Form, Greeting>& greeting) {
  form.number(greeting.incarnation);
  form.flag(greeting.hears_you);
}

template <typename Form>
void fields(Form& form, Of<Form, Challenge>& challenge) {
  form.number(challenge.nonce);
}

template <typename Form>
void fields(Form& form, Of<Form, Response>& response) {
  form.number(response.nonce);
}

template <typename Form>
void fields(Form& form, Of<Form, StatusAsk>& ask) {
  form.number(ask.inquiry);
  form.small(ask.part, kMostStatusParts);
}

template <typename Form>
void fields(Form& form, Of<Form, StatusPart>& status) {
  form.number(status.inquiry);
  form.small(status.part, kMostStatusParts);
  form.small(status.parts, kMostStatusParts + 1);
  form.check(status.part < status.parts);
  form.name(status.text, kStatusPartBytes);
}

template <typename Form>
void fields(Form& form, Of<Form, HubName>& hub) {
  form.number(hub.job);
  form.check(hub.job != protocol::kNoJob);
  form.number(hub.number);
}

template <typename Form>
void fields(Form& form, Of<Form, HubCall>& call) {
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

template <typename Form>
void fields(Form& form, Of<Form, HubAsk>& ask) {
  fields(form, ask.hub);
  form.number(ask.part);
  form.check(ask.part <= shared::kMostHubTableBytes / kHubPartBytes);
}

template <typename Form>
void fields(Form& form, Of<Form, HubPart>& part) {
  fields(form, part.hub);
  form.number(part.part);
  form.check(part.part <= shared::kMostHubTableBytes / kHubPartBytes);
  form.name(part.bytes, kHubPartBytes);
}

template <typename Form>
void fields(Form& form, Of<Form, HubState>& state) {
  fields(form, state.hub);
  form.choice(state.progress, HubState::Progress::failed);
  form.number(state.code);
  text_field(form, state.why);
}

template <typename Form>
void fields(Form& form, Of<Form, HubEnd>& end) {
  fields(form, end.hub);
}

template <typename Form>
void fields(Form& form, Of<Form, JobEnd>& end) {
  form.server(end.server);
  form.number(end.incarnation);
  form.number(end.attempt);
}

template <typename Form>
void fields(Form& form, Of<Form, JobMessage>& message) {
  fields(form, message.from);
  fields(form, message.to);
  form.number(message.job);
  job_name_field(form, message.name);
  form.number(message.owner.high);
  form.number(message.owner.low);
  form.one_of(message.body, [&](auto& body) { fields(form, body); });
}

template <typename Form>
void fields(Form& form, Of<Form, NodeMessage>& message) {
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
