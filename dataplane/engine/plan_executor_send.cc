// The executor's sending half: which segments exist already, and where their bytes are.

#include <algorithm>

#include "dataplane/engine/plan_executor.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

using control::SegmentRange;
using control::StreamPositions;
using protocol::Stage;

namespace {

// Past the first step, segments become ready one by one. Where a port has many flows few are ready
// at a time, and these are counted. Where it has one, as in a ring, it has to fill the round trip
// alone: beyond the first few, looks at twice the distance each estimate how many more, up to a
// window. What is estimated and not ready is a gap, which a resend is about to close.
constexpr std::uint64_t kCountedEach = 8;
constexpr std::uint64_t kMostCounted = 64;

}  // namespace

// BML, Algorithm 1, lines 2-3: step w follows step w-1. Here it does so segment by segment.
bool PlanExecutor::partial_sum_is_here(const InFlight& collective, unsigned w, unsigned r,
                                       std::uint32_t position) const {
  if (w == 0) return true;  // line 1: the trainer's own gradient
  const std::uint32_t before = collective.layout.positions().at_previous_step(w, r, position);
  return reduce_windows_[w - 1].reduced(collective.layout.sums(w - 1) + before);
}

// BML, Algorithm 1, lines 4-5: the broadcast of a piece follows its aggregation at its owner, or
// its arrival over the level of an earlier broadcast step. That of a block follows both.
bool PlanExecutor::result_is_here(const InFlight& collective, unsigned w,
                                  std::uint32_t position) const {
  const StreamPositions::ResultSource source =
      collective.layout.positions().result_source(w, position);
  // In a ring what is named (u, r) comes in an earlier or a later round.
  const auto has_come = [&](unsigned u, unsigned r) {
    const std::uint64_t rounds_before = std::max(r, schedule_.step(u).first_sent) - r;
    return result_flow(u, r).receive.received(collective.layout.first(PlanStage::broadcast, u) +
                                              rounds_before * collective.layout.round_length(u) +
                                              source.position);
  };
  if (!source.own) return has_come(source.step, source.offset);
  for (unsigned u = source.step; u < schedule_.steps(); ++u) {
    const control::Offsets& streams = schedule_.step(u).send_streams;
    for (unsigned r = streams.first; r < streams.end; ++r) {
      if (!has_come(u, r)) return false;
    }
  }
  // An all_gather's own piece is the trainer's, and who has given all to a root has none.
  const unsigned last = schedule_.last_step();
  return !collective.layout.has_stage(PlanStage::aggregation) || !schedule_.step(last).sums ||
         reduce_windows_[last].reduced(collective.layout.sums(last) + source.position);
}

// In the rounds of a ring after the first, it passes on what came a round before.
bool PlanExecutor::ready(const Flow& flow, const InFlight& collective,
                         std::uint32_t position) const {
  const unsigned w = flow.step;
  const std::uint32_t round_length = collective.layout.round_length(w);
  if (position >= round_length) [[unlikely]] {
    const std::uint64_t sequence =
        collective.layout.first(stage_of(flow), w) + position - round_length;
    return flow.stage == Stage::broadcast ? result_flow(w, flow.offset).receive.received(sequence)
                                          : reduce_windows_[w].reduced(sequence);
  }
  if (flow.stage == Stage::broadcast) return result_is_here(collective, w, position);
  const unsigned r = std::max<unsigned>(flow.offset, schedule_.step(w).first_sent);
  return partial_sum_is_here(collective, w, r, position);
}

const PlanExecutor::InFlight* PlanExecutor::sending(Flow& flow) const {
  // What lies before has ended: its entry may be reused.
  flow.sending = std::max(flow.sending, oldest_);
  while (flow.sending < next_ &&
         flow.send.next() >= in_flight(flow.sending).layout.end(stage_of(flow), flow.step)) {
    ++flow.sending;
  }
  // A result that does not fit can count as received although it is not written: from the
  // disagreement on, nothing may be passed on.
  const std::uint64_t end = disagreement_.has_value() ? disagreement_->collective : next_;
  flow.sends_short =
      flow.sending < next_ && in_flight(flow.sending).request.bytes <= kShortCollective;
  return flow.sending < std::min(end, unsendable_) ? &in_flight(flow.sending) : nullptr;
}

bool PlanExecutor::next_is_ready(Flow& flow) const {
  const InFlight* collective = sending(flow);
  return collective != nullptr &&
         ready(flow, *collective,
               position_of(*collective, stage_of(flow), flow.step, flow.send.next()));
}

std::optional<OutgoingSegment> PlanExecutor::next_segment(Flow& flow) {
  const InFlight* collective = sending(flow);
  if (collective == nullptr) return std::nullopt;
  const std::uint32_t position =
      position_of(*collective, stage_of(flow), flow.step, flow.send.next());
  if (!ready(flow, *collective, position)) return std::nullopt;
  if (!collective->local.alone() &&
      !take_up(flow, in_flight_[flow.sending % Session::kMostBegun], position)) {
    return std::nullopt;
  }
  return outgoing(flow, *collective, position);
}

// While a port is filled nothing becomes ready, so one look does for all of a flow's frames.
std::uint8_t PlanExecutor::ready_backlog(Flow& flow) const {
  const std::uint64_t next = flow.send.next();
  if (next >= flow.ready_end) flow.ready_end = next + count_ready(flow);
  return static_cast<std::uint8_t>(std::min(flow.ready_end - next, protocol::kMostBacklog));
}

std::uint64_t PlanExecutor::count_ready(const Flow& flow) const {
  const InFlight& collective = in_flight(flow.sending);
  const std::uint64_t next = flow.send.next();
  const std::uint64_t left = collective.layout.end(stage_of(flow), flow.step) - next;
  const std::uint32_t position = position_of(collective, stage_of(flow), flow.step, next);
  const std::uint32_t round_length = collective.layout.round_length(flow.step);
  if (flow.stage == Stage::aggregation && flow.step == 0 && position < round_length) {
    return round_length - position;
  }
  const std::uint64_t most = std::min(left, kMostCounted);
  std::uint64_t count = 1;
  while (count < most) {
    const std::uint64_t next = std::min(count < kCountedEach ? count + 1 : 2 * count, most);
    if (!ready(flow, collective, position + static_cast<std::uint32_t>(next) - 1)) break;
    count = next;
  }
  return count;
}

OutgoingSegment PlanExecutor::sent_segment(const Flow& flow, std::uint64_t sequence) const {
  const InFlight& collective = *holder(stage_of(flow), flow.step, sequence);
  return outgoing(flow, collective, position_of(collective, stage_of(flow), flow.step, sequence));
}

// BML, Algorithm 1, lines 8-9: to s go the pieces of CalcGset(s, w); lines 12-14: to all go those
// of CalcGset(a, k-1-w). Here they are the send stream of s, and the receive stream.
// In a ring they are what the round is about.
OutgoingSegment PlanExecutor::outgoing(const Flow& flow, const InFlight& collective,
                                       std::uint32_t position) const {
  const control::CollectiveLayout& layout = collective.layout;
  const PlanStage stage = stage_of(flow);
  const unsigned w = flow.step;
  const auto [r, in_stream, round] = layout.part_sent(schedule_, stage, w, flow.offset, position);
  SegmentRange range = layout.segment(schedule_, w, r, in_stream);
  if (!layout.sends(schedule_, stage, w, flow.offset, round)) range.bytes = 0;
  return {collective.signature, buffers_.contribution(collective.request, w) + range.begin,
          range.bytes};
}

}  // namespace gradcube::dataplane
