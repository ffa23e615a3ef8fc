#include "dataplane/engine/hub/hub_executor.h"

#include <algorithm>

#include "control/plan/service_order.h"
#include "dataplane/engine/flows/port_queue.h"
#include "dataplane/engine/flows/step_flows.h"
#include "dataplane/engine/hub/hub_signature.h"
#include "dataplane/engine/memory/guarded_memory.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

namespace {

// Of what is pushed, between two looks at the ports: some ten microseconds.
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{1} << 18;

}  // namespace

HubExecutor::HubExecutor(EngineHub& hub, EngineJob& job, ServerHub& of, std::size_t place,
                         const FlowSettings& flows, unsigned window)
    : hub_(hub),
      hub_number_(of.number()),
      place_(place),
      number_(of.model().executions()[place].number),
      plan_(*of.shape().plan),
      exchange_(of.exchanges()[place]),
      board_(of.board()) {
  std::size_t first = 0;
  for (unsigned w = 0; w < exchange_.schedule().steps(); ++w) {
    first_flow_[w] = first;
    first += exchange_.schedule().step(w).peers;
  }
  for_each_step_flow(plan_, of.shape().rank, exchange_.schedule(), [&](const FlowKey& key) {
    flows_.emplace_back(key, job, *this, flows, window);
  });
  streams_.resize(flows_.size());
}

unsigned HubExecutor::service_place(const Flow& flow) const {
  return control::service_place(plan_, exchange_.schedule().thread(),
                                static_cast<control::Stage>(flow.stage), flow.step,
                                exchange_.schedule().steps());
}

bool HubExecutor::begin_pushed() {
  while (const std::optional<std::uint32_t> key = board_.next_pushed(place_)) {
    exchange_.push(*key, board_.pushed(*key));
  }
  if (!exchange_.begin(kBytesAtOnce)) return false;
  wake_senders();
  return true;
}

bool HubExecutor::tell_ended() {
  bool any = false;
  while (const std::optional<std::uint32_t> key = exchange_.next_ended()) {
    const bool accumulated = board_.pushed(*key).kind == PushKind::accumulated;
    board_.end(place_, *key, accumulated ? exchange_.squares(*key) : 0);
    any = true;
  }
  return any;
}

bool HubExecutor::active() const {
  return exchange_.any_pushed() || std::any_of(flows_.begin(), flows_.end(), [](const Flow& flow) {
           return flow.send.in_flight() != 0;
         });
}

std::optional<HubExecutor::Missing> HubExecutor::missing(std::uint32_t key) {
  const std::vector<HubStream> streams = exchange_.missing(key);
  if (streams.empty()) return std::nullopt;
  const HubStream& first = streams.front();
  const control::Rank peer = exchange_.schedule().peer(first.step, first.offset);
  return Missing{plan_.placement().server(peer), first.step,
                 static_cast<protocol::Stage>(first.stage)};
}

void HubExecutor::wake_senders() {
  exchange_.take_woken([this](std::size_t number) { wake_segment(flows_[number]); });
}

// Every field is hostile.
HubExecutor::Acceptance HubExecutor::accept(Flow& flow, std::uint64_t,
                                            const Contribution& segment) {
  const std::optional<HubLabel> label = label_of(segment.signature);
  if (!label.has_value() ||
      !exchange_.arrive(stream_of(flow), *label, segment.payload, segment.bytes)) {
    return {DropReason::unfitting_chunk};
  }
  return {};
}

bool HubExecutor::take(Flow& flow, std::uint64_t, const Contribution&, const Acceptance&) {
  wake_consumed(flow);
  wake_senders();
  return false;
}

std::optional<OutgoingSegment> HubExecutor::next_segment(Flow& flow) {
  Stream& stream = streams_[number_of(flow)];
  const std::uint64_t next = flow.send.next();
  HubLabel& label = stream.labels[next % kEntries];
  if (stream.chosen <= next) {
    const std::optional<HubLabel> chosen = exchange_.next(stream_of(flow));
    if (!chosen.has_value()) return std::nullopt;
    label = *chosen;
    stream.chosen = next + 1;
  }
  return outgoing(flow, label);
}

OutgoingSegment HubExecutor::sent_segment(const Flow& flow, std::uint64_t sequence) const {
  return outgoing(flow, streams_[number_of(flow)].labels[sequence % kEntries]);
}

OutgoingSegment HubExecutor::outgoing(const Flow& flow, const HubLabel& label) const {
  const HubSegment segment = exchange_.segment(stream_of(flow), label);
  // Contributions are the trainers' memory, but for numbers of what is applied; the rest is the
  // daemon's.
  if (flow.stage == protocol::Stage::aggregation) {
    GuardedMemory::touch(segment.payload, segment.bytes);
  }
  return {signature_of(label), segment.payload, segment.bytes};
}

std::uint8_t HubExecutor::backlog(const Flow& flow) const {
  const bool chosen = streams_[number_of(flow)].chosen > flow.send.next();
  const std::uint64_t waiting = exchange_.waiting(stream_of(flow)) + (chosen ? 1 : 0);
  return static_cast<std::uint8_t>(std::min(waiting, protocol::kMostBacklog));
}

}  // namespace gradcube::dataplane
