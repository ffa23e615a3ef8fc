#include "dataplane/engine/hub_executor.h"

#include <algorithm>

#include "control/checkpoint/hub_planes.h"
#include "control/plan/service_order.h"
#include "dataplane/engine/guarded_memory.h"
#include "dataplane/engine/port_queue.h"
#include "dataplane/engine/step_flows.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kMostTold = 255;  // that a frame can tell

// Of what is pushed, between two looks at the ports: some ten microseconds.
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{1} << 18;

// HubKind has the first three of HubPush in their order.
constexpr unsigned kFirstKind = static_cast<unsigned>(HubKind::gradients);
constexpr unsigned kSaved = static_cast<unsigned>(HubKind::saved);
constexpr unsigned kLoaded = static_cast<unsigned>(HubKind::loaded);
static_assert(static_cast<unsigned>(HubKind::restored) ==
              kFirstKind + static_cast<unsigned>(HubPush::Kind::restored));
static_assert(kSaved + control::kMostHubPlanes <= kLoaded);

std::uint8_t number_of_kind(const HubLabel& label) {
  switch (label.kind) {
    case HubPush::Kind::saved:
      return static_cast<std::uint8_t>(kSaved + label.plane);
    case HubPush::Kind::loaded:
      return static_cast<std::uint8_t>(kLoaded + label.plane);
    default:
      return static_cast<std::uint8_t>(kFirstKind + static_cast<unsigned>(label.kind));
  }
}

// Of a number that came in a frame. False: it is none.
bool read_kind(unsigned number, HubLabel& label) {
  const auto is_plane_of = [number](unsigned first) {
    return number >= first && number < first + control::kMostHubPlanes;
  };
  if (is_plane_of(kSaved) || is_plane_of(kLoaded)) {
    label.kind = is_plane_of(kSaved) ? HubPush::Kind::saved : HubPush::Kind::loaded;
    label.plane = static_cast<std::uint8_t>(number - (is_plane_of(kSaved) ? kSaved : kLoaded));
    return true;
  }
  const unsigned kind = number - kFirstKind;
  if (kind > static_cast<unsigned>(HubPush::Kind::restored)) return false;
  label.kind = static_cast<HubPush::Kind>(kind);
  return true;
}

// In a segment header the number of the chunk stands for that of the collective. The other fields
// share the position, the round and the digest: position 16 and digest 16 bits, digest 8 and round
// 8 bits, digest 8 bits.
CollectiveSignature signature_of(const HubLabel& label) {
  return {static_cast<std::uint8_t>(label.digest >> 24), label.digest << 16 | label.position,
          static_cast<std::uint16_t>(label.round | (label.digest >> 16 & 0xffU) << 8),
          number_of_kind(label), label.chunk};
}
static_assert(HubShape::kMostPositions == 1U << 16);

std::optional<HubLabel> label_of(const CollectiveSignature& signature) {
  HubLabel label;
  if (!read_kind(signature.kind, label)) return std::nullopt;
  label.chunk = signature.collective;
  label.position = signature.count & 0xffffU;
  label.round = static_cast<std::uint8_t>(signature.root);
  label.digest = signature.count >> 16 | std::uint32_t{signature.root} >> 8 << 16 |
                 std::uint32_t{signature.type_and_operation} << 24;
  return label;
}

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
    board_.end(place_, *key);
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
  // Contributions are the trainers' memory, weights the daemon's.
  if (flow.stage == protocol::Stage::aggregation) {
    GuardedMemory::touch(segment.payload, segment.bytes);
  }
  return {label.chunk, signature_of(label), segment.payload, segment.bytes};
}

std::uint8_t HubExecutor::backlog(const Flow& flow) const {
  const bool chosen = streams_[number_of(flow)].chosen > flow.send.next();
  const std::uint64_t waiting = exchange_.waiting(stream_of(flow)) + (chosen ? 1 : 0);
  return static_cast<std::uint8_t>(std::min(waiting, kMostTold));
}

}  // namespace gradcube::dataplane
