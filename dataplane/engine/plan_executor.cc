#include "dataplane/engine/plan_executor.h"

#include <algorithm>
#include <cstring>

#include "dataplane/engine/engine_job.h"

namespace gradcube::dataplane {

using aggregation::Operation;
using control::SegmentRange;
using control::ThreadSchedule;
using protocol::Stage;

// A segment header has four bits for each (docs/protocol.md).
static_assert(aggregation::kDataTypes <= 16 && aggregation::kOperations <= 16);

CollectiveSignature signature(const CollectiveRequest& request) {
  return {static_cast<std::uint8_t>(static_cast<unsigned>(request.dtype) |
                                    static_cast<unsigned>(request.operation) << 4),
          static_cast<std::uint32_t>(request.count)};
}

PlanExecutor::PlanExecutor(const ExecutorContext& context, unsigned thread, EngineJob& job)
    : context_(context),
      schedule_(context.plan, context.plan.placement().rank(context.server).value(), thread),
      session_(job.session()) {
  unsigned count = 0;
  unsigned widest = 1;
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    first_flow_of_step_[w] = count;
    step_of_level_[context.plan.level(thread, w).value()] = static_cast<std::uint8_t>(w);
    const unsigned radix = schedule_.step(w).radix;
    reduce_windows_.emplace_back(radix - 1);
    count += radix - 1;
    widest = std::max(widest, radix);
  }
  first_flow_of_step_[schedule_.steps()] = count;
  sources_.resize(widest);
  // BML, Algorithm 1, lines 6-7 and 11-13: the steps' levels, and each server s in N_l(a).
  for (Stage stage : {Stage::aggregation, Stage::broadcast}) {
    for (unsigned w = 0; w < schedule_.steps(); ++w) {
      for (unsigned r = 1; r < schedule_.step(w).radix; ++r) {
        const FlowKey key{.stage = stage,
                          .step = static_cast<std::uint8_t>(w),
                          .offset = static_cast<std::uint8_t>(r),
                          .level = static_cast<std::uint8_t>(context.plan.level(thread, w).value()),
                          .peer = context.plan.placement().server(schedule_.peer(w, r))};
        flows_.emplace_back(key, job, *this, context.flows);
      }
    }
  }
}

Flow& PlanExecutor::flow(Stage stage, unsigned level, unsigned digit) {
  const unsigned w = step_of_level_[level];
  const unsigned in_stage = first_flow_of_step_[w] + schedule_.offset_of_digit(w, digit) - 1;
  return flows_[stage == Stage::aggregation ? in_stage
                                            : first_flow_of_step_[schedule_.steps()] + in_stage];
}

const Flow& PlanExecutor::result_flow(unsigned w, unsigned r) const {
  return flows_[first_flow_of_step_[schedule_.steps()] + first_flow_of_step_[w] + r - 1];
}

bool PlanExecutor::begin_published() {
  const std::uint64_t published = session_.published();
  const std::uint64_t first_new = next_;
  while (next_ <= published && next_ - oldest_ < kMaxInFlight) begin(next_++);
  if (next_ == first_new) return false;
  // An overflow has left a wrapped sum in the buffer. To reduce that segment again could succeed,
  // with a wrong result.
  if (overflow_.has_value()) return true;
  // Contributions that came before the trainer's own submission.
  const std::uint64_t base = reduce_windows_[0].base();
  for (std::uint64_t sequence = base; sequence < base + ReduceWindow::kWindow; ++sequence) {
    if (!reduce_windows_[0].all_arrived(sequence)) continue;
    const InFlight* collective = holder(0, sequence);
    if (collective != nullptr) reduce_if_complete(*collective, 0, sequence);
  }
  return true;
}

void PlanExecutor::begin(std::uint64_t collective) {
  InFlight& entry = in_flight_[collective % kMaxInFlight];
  entry.request = session_.request(collective);
  entry.signature = signature(entry.request);
  entry.layout = control::CollectiveLayout(schedule_, entry.request.bytes, context_.segment_bytes,
                                           end_of_streams_);
  // One contribution shows a disagreement: those that would complete the segment may never come.
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    end_of_streams_[w] = entry.layout.end(w);
    for (unsigned r = 1; r < schedule_.step(w).radix; ++r) {
      const Contribution* their = reduce_windows_[w].waiting(entry.layout.first(w), r);
      if (their != nullptr && their->signature != entry.signature) disagree(entry, w, r);
    }
  }
}

const PlanExecutor::InFlight* PlanExecutor::holder(unsigned w, std::uint64_t sequence) const {
  if (sequence >= end_of_streams_[w]) return nullptr;
  for (std::uint64_t collective = next_; collective-- > oldest_;) {
    const InFlight& entry = in_flight(collective);
    if (sequence >= entry.layout.first(w)) return sequence < entry.layout.end(w) ? &entry : nullptr;
  }
  return nullptr;
}

std::optional<PlanExecutor::Place> PlanExecutor::locate(unsigned step, unsigned offset,
                                                        std::uint64_t sequence) const {
  const InFlight* collective = holder(step, sequence);
  if (collective == nullptr) return std::nullopt;
  return place_in(*collective, step, offset, position_of(*collective, step, sequence));
}

std::optional<PlanExecutor::Place> PlanExecutor::place_of_result(const Flow& flow,
                                                                 std::uint64_t sequence,
                                                                 const Contribution& result) {
  const std::optional<Place> place = locate(flow.step, flow.offset, sequence);
  if (!place ||
      (place->collective->signature == result.signature && place->range.bytes == result.bytes)) {
    return place;
  }
  disagree(*place->collective, flow.step, flow.offset);
  return std::nullopt;
}

// BML, Algorithm 1, line 15: the received pieces replace this server's own.
void PlanExecutor::write_result(const Place& place, const Contribution& result) {
  std::memcpy(place.collective->request.buffer + place.range.begin, result.payload,
              place.range.bytes);
}

void PlanExecutor::contribute(const Flow& flow, std::uint64_t sequence,
                              const Contribution& contribution) {
  reduce_windows_[flow.step].hold(sequence, flow.offset, contribution);
  const InFlight* collective = holder(flow.step, sequence);
  if (collective == nullptr) return;  // not submitted here yet: see begin_published()
  if (contribution.signature != collective->signature) {
    disagree(*collective, flow.step, flow.offset);
    return;
  }
  reduce_if_complete(*collective, flow.step, sequence);
}

void PlanExecutor::disagree(const InFlight& collective, unsigned w, unsigned r) {
  const bcube::ServerId peer = context_.plan.placement().server(schedule_.peer(w, r));
  disagreement_ = {collective.request.number, peer, thread(), w};
}

// Reduces a segment if all that it needs is here, and what waited for it at the following steps.
void PlanExecutor::reduce_if_complete(const InFlight& collective, unsigned w,
                                      std::uint64_t sequence) {
  for (;;) {
    if (!reduce_windows_[w].all_arrived(sequence)) return;
    const std::uint32_t position = position_of(collective, w, sequence);
    if (!partial_sum_is_here(collective, w, 0, position)) return;
    const SegmentRange range = collective.layout.segment(schedule_, w, 0, position);
    if (!contributions_agree(collective, w, sequence, range.bytes)) return;
    if (!reduce(collective, w, sequence, range)) return;
    reduce_windows_[w].finish(sequence);
    if (w == schedule_.last_step()) return;
    const ThreadSchedule::NextStep next = schedule_.at_next_step(w, position);
    if (next.offset != 0) return;
    ++w;
    sequence = collective.layout.first(w) + next.position;
  }
}

bool PlanExecutor::contributions_agree(const InFlight& collective, unsigned w,
                                       std::uint64_t sequence, std::uint32_t bytes) {
  for (unsigned r = 1; r < schedule_.step(w).radix; ++r) {
    const Contribution& their = reduce_windows_[w].contribution(sequence, r);
    if (their.signature == collective.signature && their.bytes == bytes) continue;
    disagree(collective, w, r);
    return false;
  }
  return true;
}

// Here the contributions of aggregation step w are added to the server's own. BML, Algorithm 1,
// line 10: aggregate a's local gradient pieces and the received pieces from N_l(a).
bool PlanExecutor::reduce(const InFlight& collective, unsigned w, std::uint64_t sequence,
                          SegmentRange range) {
  if (range.bytes == 0) return true;
  const CollectiveRequest& request = collective.request;
  const unsigned radix = schedule_.step(w).radix;
  std::uint8_t* own = request.buffer + range.begin;
  for (unsigned digit = 0; digit < radix; ++digit) {
    const unsigned r = schedule_.offset_of_digit(w, digit);
    sources_[digit] = r == 0 ? own : reduce_windows_[w].contribution(sequence, r).payload;
  }
  const std::size_t size = aggregation::element_bytes(request.dtype);
  const std::size_t count = range.bytes / size;
  const aggregation::ReduceFunction add = context_.kernels.reduce(request.dtype, request.operation);
  if (!add(own, sources_.data(), radix, count)) {
    overflow_ = {request.number, thread(), w, request.dtype, range.begin / size, count};
    return false;
  }
  if (w == schedule_.last_step() && request.operation == Operation::average) {
    const aggregation::DivideFunction divide = context_.kernels.divide(request.dtype);
    if (divide != nullptr) divide(own, count, context_.plan.ranks());
  }
  return true;
}

// BML, Algorithm 1, lines 2-3: step w follows step w-1. Here it does so segment by segment.
bool PlanExecutor::partial_sum_is_here(const InFlight& collective, unsigned w, unsigned r,
                                       std::uint32_t position) const {
  if (w == 0) return true;  // line 1: the trainer's own gradient
  const std::uint32_t before = schedule_.at_previous_step(w, r, position);
  return reduce_windows_[w - 1].reduced(collective.layout.first(w - 1) + before);
}

// BML, Algorithm 1, lines 4-5: the broadcast of a piece follows its aggregation at its owner, or
// its arrival over the level of an earlier broadcast step.
bool PlanExecutor::result_is_here(const InFlight& collective, unsigned w,
                                  std::uint32_t position) const {
  const ThreadSchedule::ResultSource source = schedule_.result_source(w, position);
  const std::uint64_t sequence = collective.layout.first(source.step) + source.position;
  return source.own ? reduce_windows_[source.step].reduced(sequence)
                    : result_flow(source.step, source.offset).receive.received(sequence);
}

bool PlanExecutor::ready(const Flow& flow, const InFlight& collective,
                         std::uint32_t position) const {
  return flow.stage == Stage::broadcast
             ? result_is_here(collective, flow.step, position)
             : partial_sum_is_here(collective, flow.step, flow.offset, position);
}

const PlanExecutor::InFlight* PlanExecutor::sending(Flow& flow) const {
  // What lies before has ended: its entry may be reused.
  flow.sending = std::max(flow.sending, oldest_);
  while (flow.sending < next_ &&
         flow.send.next() >= in_flight(flow.sending).layout.end(flow.step)) {
    ++flow.sending;
  }
  return flow.sending < next_ ? &in_flight(flow.sending) : nullptr;
}

bool PlanExecutor::next_is_ready(Flow& flow) const {
  const InFlight* collective = sending(flow);
  return collective != nullptr &&
         ready(flow, *collective, position_of(*collective, flow.step, flow.send.next()));
}

std::optional<OutgoingSegment> PlanExecutor::next_segment(Flow& flow) const {
  const InFlight* collective = sending(flow);
  if (collective == nullptr) return std::nullopt;
  const std::uint32_t position = position_of(*collective, flow.step, flow.send.next());
  if (!ready(flow, *collective, position)) return std::nullopt;
  return outgoing(flow, *collective, position);
}

std::uint8_t PlanExecutor::ready_backlog(const Flow& flow) const {
  const std::uint64_t left = in_flight(flow.sending).layout.end(flow.step) - flow.send.next();
  // Past the first step, what follows becomes ready as it is reduced: ask for little at a time.
  const std::uint64_t most = flow.stage == Stage::aggregation && flow.step == 0 ? 255 : 8;
  return static_cast<std::uint8_t>(std::min(left, most));
}

OutgoingSegment PlanExecutor::sent_segment(const Flow& flow, std::uint64_t sequence) const {
  const InFlight& collective = *holder(flow.step, sequence);
  return outgoing(flow, collective, position_of(collective, flow.step, sequence));
}

// BML, Algorithm 1, lines 8-9: to s go the pieces of CalcGset(s, w); lines 12-14: to all go those
// of CalcGset(a, k-1-w). Here they are the send stream of s, and the receive stream.
OutgoingSegment PlanExecutor::outgoing(const Flow& flow, const InFlight& collective,
                                       std::uint32_t position) const {
  const unsigned r = flow.stage == Stage::aggregation ? flow.offset : 0;
  const Place place = place_in(collective, flow.step, r, position);
  return {collective.request.number, collective.signature, position,
          collective.request.buffer + place.range.begin, place.range.bytes};
}

bool PlanExecutor::is_finished(const InFlight& collective) {
  for (std::size_t checked = 0; checked < flows_.size(); ++checked) {
    const Flow& flow = flows_[blocking_flow_];
    const std::uint64_t end = collective.layout.end(flow.step);
    if (flow.send.cumulative() < end || consumed(flow) < end) return false;
    blocking_flow_ = (blocking_flow_ + 1) % flows_.size();
  }
  return true;
}

bool PlanExecutor::finish_completed() {
  const std::uint64_t before = oldest_;
  while (oldest_ < next_ && is_finished(in_flight(oldest_))) ++oldest_;
  if (oldest_ == before) return false;
  session_.report(thread(), oldest_ - 1);
  return true;
}

void PlanExecutor::reset(std::uint64_t last_failed) {
  for (ReduceWindow& window : reduce_windows_) window.clear();
  for (Flow& flow : flows_) {
    flow.send = protocol::SendWindow(context_.flows.recovery);
    flow.receive = protocol::ReceiveWindow(1, 0, context_.flows.acknowledgement);
    flow.sending = last_failed + 1;
  }
  end_of_streams_.fill(0);
  oldest_ = next_ = last_failed + 1;
  disagreement_.reset();
  overflow_.reset();
  session_.report(thread(), last_failed);
}

}  // namespace gradcube::dataplane
