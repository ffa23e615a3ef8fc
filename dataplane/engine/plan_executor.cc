#include "dataplane/engine/plan_executor.h"

#include <algorithm>
#include <cstring>

namespace gradcube::dataplane {

using aggregation::Operation;
using protocol::Stage;

// A segment header has four bits for each (docs/protocol.md).
static_assert(aggregation::kDataTypes <= 16 && aggregation::kOperations <= 16);

CollectiveSignature signature(const CollectiveRequest& request) {
  return {static_cast<std::uint8_t>(static_cast<unsigned>(request.dtype) |
                                    static_cast<unsigned>(request.operation) << 4),
          static_cast<std::uint32_t>(request.count)};
}

PlanExecutor::PlanExecutor(const control::Plan& plan, bcube::ServerId server, unsigned thread,
                           EngineJob& job, Session& session, const aggregation::Kernels& kernels,
                           std::uint32_t segment_bytes, const FlowSettings& flow_settings)
    : plan_(plan),
      schedule_(plan, server, thread),
      session_(session),
      kernels_(kernels),
      segment_bytes_(segment_bytes),
      flow_settings_(flow_settings),
      server_(server) {
  const bcube::AddressSpace& addresses = plan.space();
  unsigned count = 0;
  unsigned widest = 1;
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    first_flow_of_step_[w] = count;
    const ScheduleStep& step = schedule_.step(w);
    reduce_windows_.emplace_back(step.radix - 1);
    count += step.radix - 1;
    widest = std::max(widest, step.radix);
  }
  first_flow_of_step_[schedule_.steps()] = count;
  sources_.resize(widest);
  for (Stage stage : {Stage::aggregation, Stage::broadcast}) {
    for (unsigned w = 0; w < schedule_.steps(); ++w) {
      const ScheduleStep& step = schedule_.step(w);
      for (unsigned r = 1; r < step.radix; ++r) {
        const bcube::ServerId peer =
            addresses.with_digit(server, step.level, schedule_.digit_at_offset(w, r));
        flows_.emplace_back(flow_settings, job, *this, stage, w, r, step.level, peer);
      }
    }
  }
}

Flow& PlanExecutor::flow(Stage stage, unsigned level, unsigned digit) {
  const unsigned w = schedule_.step_of_level(level);
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
  while (next_ <= published && next_ - oldest_ < kMaxInFlight) {
    InFlight& entry = in_flight_[next_ % kMaxInFlight];
    entry.request = session_.request(next_);
    entry.signature = signature(entry.request);
    entry.layout = CollectiveLayout(schedule_, plan_.thread_range(thread(), entry.request.bytes),
                                    entry.request.bytes, segment_bytes_, end_of_streams_);
    for (unsigned w = 0; w < schedule_.steps(); ++w) end_of_streams_[w] = entry.layout.end(w);
    ++next_;
    for (unsigned w = 0; w < schedule_.steps(); ++w) {
      for (unsigned r = 1; r < schedule_.step(w).radix; ++r) compare(w, entry.layout.first(w), r);
    }
  }
  if (next_ == first_new) return false;
  // An overflow has left a wrapped sum in the buffer. To reduce that segment again could succeed,
  // with a wrong result.
  if (overflow_.has_value()) return true;
  // Contributions that came before the trainer's own submission.
  const std::uint64_t base = reduce_windows_[0].base();
  for (std::uint64_t sequence = base; sequence < base + ReduceWindow::kWindow; ++sequence) {
    reduce_if_complete(0, sequence);
  }
  return true;
}

const PlanExecutor::InFlight* PlanExecutor::holder(unsigned w, std::uint64_t sequence) const {
  if (sequence >= end_of_streams_[w]) return nullptr;
  for (std::uint64_t collective = next_; collective-- > oldest_;) {
    const InFlight& entry = in_flight(collective);
    if (sequence >= entry.layout.first(w)) return sequence < entry.layout.end(w) ? &entry : nullptr;
  }
  return nullptr;
}

bool PlanExecutor::result_fits(const Flow& flow, std::uint64_t sequence,
                               const Contribution& result) {
  const InFlight* collective = holder(flow.step, sequence);
  if (collective == nullptr) return false;
  const auto position = static_cast<std::uint32_t>(sequence - collective->layout.first(flow.step));
  const SegmentRange range =
      collective->layout.segment(schedule_, flow.step, flow.offset, position);
  if (collective->signature == CollectiveSignature{result.type_and_operation, result.count} &&
      range.bytes == result.bytes) {
    return true;
  }
  disagreement_ = {collective->request.number, flow.peer, thread(), flow.step};
  return false;
}

void PlanExecutor::write_result(const Flow& flow, std::uint64_t sequence,
                                const Contribution& result) {
  const InFlight& collective = *holder(flow.step, sequence);
  const auto position = static_cast<std::uint32_t>(sequence - collective.layout.first(flow.step));
  const SegmentRange range = collective.layout.segment(schedule_, flow.step, flow.offset, position);
  std::memcpy(collective.request.buffer + range.begin, result.payload, range.bytes);
}

void PlanExecutor::contribute(const Flow& flow, std::uint64_t sequence,
                              const Contribution& contribution) {
  reduce_windows_[flow.step].hold(sequence, flow.offset, contribution);
  compare(flow.step, sequence, flow.offset);
  reduce_if_complete(flow.step, sequence);
}

void PlanExecutor::compare(unsigned w, std::uint64_t sequence, unsigned r) {
  const Contribution* their = reduce_windows_[w].waiting(sequence, r);
  const InFlight* collective = their != nullptr ? holder(w, sequence) : nullptr;
  if (collective == nullptr ||
      collective->signature == CollectiveSignature{their->type_and_operation, their->count}) {
    return;
  }
  const unsigned digit = schedule_.digit_at_offset(w, r);
  disagreement_ = {collective->request.number,
                   plan_.space().with_digit(server_, schedule_.step(w).level, digit), thread(), w};
}

bool PlanExecutor::own_is_ready(const InFlight& collective, unsigned w,
                                std::uint32_t position) const {
  if (w == 0) return true;
  return reduce_windows_[w - 1].reduced(collective.layout.first(w - 1) +
                                        schedule_.at_previous_step(w, 0, position));
}

void PlanExecutor::reduce_if_complete(unsigned w, std::uint64_t sequence) {
  for (;;) {
    if (!reduce_windows_[w].all_arrived(sequence)) return;
    const InFlight* collective = holder(w, sequence);
    if (collective == nullptr) return;
    const auto position = static_cast<std::uint32_t>(sequence - collective->layout.first(w));
    if (!own_is_ready(*collective, w, position)) return;
    const SegmentRange range = collective->layout.segment(schedule_, w, 0, position);
    if (!contributions_agree(*collective, w, sequence, range.bytes)) return;
    if (!reduce(*collective, w, sequence, range)) return;
    reduce_windows_[w].finish(sequence);
    if (w == schedule_.last_step()) return;
    const ThreadSchedule::NextStep next = schedule_.at_next_step(w, position);
    if (next.offset != 0) return;
    ++w;
    sequence = collective->layout.first(w) + next.position;
  }
}

bool PlanExecutor::contributions_agree(const InFlight& collective, unsigned w,
                                       std::uint64_t sequence, std::uint32_t bytes) {
  for (unsigned r = 1; r < schedule_.step(w).radix; ++r) {
    const Contribution& their = reduce_windows_[w].contribution(sequence, r);
    if (collective.signature == CollectiveSignature{their.type_and_operation, their.count} &&
        their.bytes == bytes) {
      continue;
    }
    const unsigned digit = schedule_.digit_at_offset(w, r);
    disagreement_ = {collective.request.number,
                     plan_.space().with_digit(server_, schedule_.step(w).level, digit), thread(),
                     w};
    return false;
  }
  return true;
}

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
  if (!kernels_.reduce(request.dtype, request.operation)(own, sources_.data(), radix, count)) {
    overflow_ = {request.number, thread(), w, request.dtype, range.begin / size, count};
    return false;
  }
  if (w == schedule_.last_step() && request.operation == Operation::average) {
    const aggregation::DivideFunction divide = kernels_.divide(request.dtype);
    if (divide != nullptr) divide(own, count, plan_.space().servers());
  }
  return true;
}

bool PlanExecutor::result_is_here(const InFlight& collective, unsigned w,
                                  std::uint32_t position) const {
  const ThreadSchedule::ResultSource source = schedule_.result_source(w, position);
  const std::uint64_t sequence = collective.layout.first(source.step) + source.position;
  return source.own ? reduce_windows_[source.step].reduced(sequence)
                    : result_flow(source.step, source.offset).receive.received(sequence);
}

bool PlanExecutor::ready(const Flow& flow, const InFlight& collective,
                         std::uint32_t position) const {
  if (flow.stage == Stage::broadcast) return result_is_here(collective, flow.step, position);
  if (flow.step == 0) return true;
  const std::uint32_t before = schedule_.at_previous_step(flow.step, flow.offset, position);
  return reduce_windows_[flow.step - 1].reduced(collective.layout.first(flow.step - 1) + before);
}

bool PlanExecutor::next_is_ready(Flow& flow) {
  const std::uint64_t sequence = flow.send.next();
  flow.sending =
      std::max(flow.sending, oldest_);  // what lies before has ended: its entry may be reused
  while (flow.sending < next_ && sequence >= in_flight(flow.sending).layout.end(flow.step)) {
    ++flow.sending;
  }
  if (flow.sending >= next_) return false;
  const InFlight& collective = in_flight(flow.sending);
  return ready(flow, collective,
               static_cast<std::uint32_t>(sequence - collective.layout.first(flow.step)));
}

std::uint8_t PlanExecutor::backlog(Flow& flow) {
  if (!next_is_ready(flow)) return 0;
  const std::uint64_t left = in_flight(flow.sending).layout.end(flow.step) - flow.send.next();
  // Past the first step, what follows becomes ready as it is reduced: ask for little at a time.
  const std::uint64_t most = flow.stage == Stage::aggregation && flow.step == 0 ? 255 : 8;
  return static_cast<std::uint8_t>(std::min(left, most));
}

OutgoingSegment PlanExecutor::outgoing(const Flow& flow, std::uint64_t sequence) const {
  const InFlight& collective = *holder(flow.step, sequence);
  const auto position = static_cast<std::uint32_t>(sequence - collective.layout.first(flow.step));
  const unsigned r = flow.stage == Stage::aggregation ? flow.offset : 0;
  const SegmentRange range = collective.layout.segment(schedule_, flow.step, r, position);
  return {collective.request.number, collective.signature, position,
          collective.request.buffer + range.begin, range.bytes};
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
    flow.send = protocol::SendWindow(flow_settings_.recovery);
    flow.receive = protocol::ReceiveWindow(1, 0, flow_settings_.acknowledgement);
    flow.sending = last_failed + 1;
  }
  end_of_streams_.fill(0);
  oldest_ = next_ = last_failed + 1;
  disagreement_.reset();
  overflow_.reset();
  session_.report(thread(), last_failed);
}

}  // namespace gradcube::dataplane
