#include "dataplane/engine/plan_executor.h"

#include <algorithm>
#include <cstring>

namespace gradcube::dataplane {

using aggregation::Operation;
using protocol::Stage;

OrderSignature signature(const CollectiveOrder& order) {
  return {static_cast<std::uint8_t>(static_cast<unsigned>(order.dtype) |
                                    static_cast<unsigned>(order.operation) << 4),
          static_cast<std::uint32_t>(order.count)};
}

JobThread::JobThread(const control::Plan& plan, bcube::ServerId server, unsigned thread,
                     JobAtEngine& job, Session& session, const aggregation::Kernels& kernels,
                     std::uint32_t segment_bytes, const FlowSettings& flow_settings)
    : plan_(plan),
      shape_(plan, server, thread),
      session_(session),
      kernels_(kernels),
      segment_bytes_(segment_bytes),
      flow_settings_(flow_settings),
      server_(server) {
  const bcube::AddressSpace& addresses = plan.space();
  unsigned count = 0;
  unsigned widest = 1;
  for (unsigned w = 0; w < shape_.steps(); ++w) {
    first_flow_of_step_[w] = count;
    const StepShape& step = shape_.step(w);
    folds_.emplace_back(step.radix - 1);
    count += step.radix - 1;
    widest = std::max(widest, step.radix);
  }
  first_flow_of_step_[shape_.steps()] = count;
  sources_.resize(widest);
  for (Stage stage : {Stage::aggregation, Stage::broadcast}) {
    for (unsigned w = 0; w < shape_.steps(); ++w) {
      const StepShape& step = shape_.step(w);
      for (unsigned r = 1; r < step.radix; ++r) {
        const bcube::ServerId peer =
            addresses.with_digit(server, step.level, shape_.digit_at_offset(w, r));
        flows_.emplace_back(flow_settings, job, *this, stage, w, r, step.level, peer);
      }
    }
  }
}

Flow& JobThread::flow(Stage stage, unsigned level, unsigned digit) {
  const unsigned w = shape_.step_of_level(level);
  const unsigned in_stage = first_flow_of_step_[w] + shape_.offset_of_digit(w, digit) - 1;
  return flows_[stage == Stage::aggregation ? in_stage
                                            : first_flow_of_step_[shape_.steps()] + in_stage];
}

const Flow& JobThread::result_flow(unsigned w, unsigned r) const {
  return flows_[first_flow_of_step_[shape_.steps()] + first_flow_of_step_[w] + r - 1];
}

bool JobThread::begin_published() {
  const std::uint64_t published = session_.published();
  const std::uint64_t first_new = next_;
  while (next_ <= published && next_ - oldest_ < kMaxInFlight) {
    InFlight& entry = in_flight_[next_ % kMaxInFlight];
    entry.order = session_.order(next_);
    entry.signature = signature(entry.order);
    entry.layout = CollectiveLayout(shape_, plan_.thread_range(thread(), entry.order.bytes),
                                    entry.order.bytes, segment_bytes_, end_of_streams_);
    for (unsigned w = 0; w < shape_.steps(); ++w) end_of_streams_[w] = entry.layout.end(w);
    ++next_;
    for (unsigned w = 0; w < shape_.steps(); ++w) {
      for (unsigned r = 1; r < shape_.step(w).radix; ++r) compare(w, entry.layout.first(w), r);
    }
  }
  if (next_ == first_new) return false;
  // Contributions that came before the trainer's own submission.
  const std::uint64_t base = folds_[0].base();
  for (std::uint64_t sequence = base; sequence < base + FoldWindow::kWindow; ++sequence) {
    fold_if_complete(0, sequence);
  }
  return true;
}

const JobThread::InFlight* JobThread::holder(unsigned w, std::uint64_t sequence) const {
  if (sequence >= end_of_streams_[w]) return nullptr;
  for (std::uint64_t collective = next_; collective-- > oldest_;) {
    const InFlight& entry = in_flight(collective);
    if (sequence >= entry.layout.first(w)) return sequence < entry.layout.end(w) ? &entry : nullptr;
  }
  return nullptr;
}

bool JobThread::result_fits(const Flow& flow, std::uint64_t sequence, const Contribution& result) {
  const InFlight* collective = holder(flow.step, sequence);
  if (collective == nullptr) return false;
  const auto position = static_cast<std::uint32_t>(sequence - collective->layout.first(flow.step));
  const SegmentRange range = collective->layout.segment(shape_, flow.step, flow.offset, position);
  if (collective->signature == OrderSignature{result.type_and_operation, result.count} &&
      range.bytes == result.bytes) {
    return true;
  }
  disagreement_ = {collective->order.number, flow.peer, thread(), flow.step};
  return false;
}

void JobThread::write_result(const Flow& flow, std::uint64_t sequence, const Contribution& result) {
  const InFlight& collective = *holder(flow.step, sequence);
  const auto position = static_cast<std::uint32_t>(sequence - collective.layout.first(flow.step));
  const SegmentRange range = collective.layout.segment(shape_, flow.step, flow.offset, position);
  std::memcpy(collective.order.buffer + range.begin, result.payload, range.bytes);
}

void JobThread::contribute(const Flow& flow, std::uint64_t sequence,
                           const Contribution& contribution) {
  folds_[flow.step].hold(sequence, flow.offset, contribution);
  compare(flow.step, sequence, flow.offset);
  fold_if_complete(flow.step, sequence);
}

void JobThread::compare(unsigned w, std::uint64_t sequence, unsigned r) {
  const Contribution* their = folds_[w].waiting(sequence, r);
  const InFlight* collective = their != nullptr ? holder(w, sequence) : nullptr;
  if (collective == nullptr ||
      collective->signature == OrderSignature{their->type_and_operation, their->count}) {
    return;
  }
  const unsigned digit = shape_.digit_at_offset(w, r);
  disagreement_ = {collective->order.number,
                   plan_.space().with_digit(server_, shape_.step(w).level, digit), thread(), w};
}

bool JobThread::own_is_ready(const InFlight& collective, unsigned w, std::uint32_t position) const {
  if (w == 0) return true;
  return folds_[w - 1].folded(collective.layout.first(w - 1) +
                              shape_.at_previous_step(w, 0, position));
}

void JobThread::fold_if_complete(unsigned w, std::uint64_t sequence) {
  for (;;) {
    if (!folds_[w].all_arrived(sequence)) return;
    const InFlight* collective = holder(w, sequence);
    if (collective == nullptr) return;
    const auto position = static_cast<std::uint32_t>(sequence - collective->layout.first(w));
    if (!own_is_ready(*collective, w, position)) return;
    const SegmentRange range = collective->layout.segment(shape_, w, 0, position);
    if (!contributions_agree(*collective, w, sequence, range.bytes)) return;
    fold(*collective, w, sequence, range);
    folds_[w].finish(sequence);
    if (w == shape_.last_step()) return;
    const ThreadShape::NextStep next = shape_.at_next_step(w, position);
    if (next.offset != 0) return;
    ++w;
    sequence = collective->layout.first(w) + next.position;
  }
}

bool JobThread::contributions_agree(const InFlight& collective, unsigned w, std::uint64_t sequence,
                                    std::uint32_t bytes) {
  for (unsigned r = 1; r < shape_.step(w).radix; ++r) {
    const Contribution& their = folds_[w].contribution(sequence, r);
    if (collective.signature == OrderSignature{their.type_and_operation, their.count} &&
        their.bytes == bytes) {
      continue;
    }
    const unsigned digit = shape_.digit_at_offset(w, r);
    disagreement_ = {collective.order.number,
                     plan_.space().with_digit(server_, shape_.step(w).level, digit), thread(), w};
    return false;
  }
  return true;
}

void JobThread::fold(const InFlight& collective, unsigned w, std::uint64_t sequence,
                     SegmentRange range) {
  if (range.bytes == 0) return;
  const CollectiveOrder& order = collective.order;
  const unsigned radix = shape_.step(w).radix;
  std::uint8_t* own = order.buffer + range.begin;
  for (unsigned digit = 0; digit < radix; ++digit) {
    const unsigned r = shape_.offset_of_digit(w, digit);
    sources_[digit] = r == 0 ? own : folds_[w].contribution(sequence, r).payload;
  }
  const std::size_t count = range.bytes / aggregation::element_bytes(order.dtype);
  kernels_.fold(order.dtype, order.operation)(own, sources_.data(), radix, count);
  if (w == shape_.last_step() && order.operation == Operation::average) {
    kernels_.divide(order.dtype)(own, count, plan_.space().servers());
  }
}

bool JobThread::result_is_here(const InFlight& collective, unsigned w,
                               std::uint32_t position) const {
  const ThreadShape::ResultSource source = shape_.result_source(w, position);
  const std::uint64_t sequence = collective.layout.first(source.step) + source.position;
  return source.own ? folds_[source.step].folded(sequence)
                    : result_flow(source.step, source.offset).receive.received(sequence);
}

bool JobThread::ready(const Flow& flow, const InFlight& collective, std::uint32_t position) const {
  if (flow.stage == Stage::broadcast) return result_is_here(collective, flow.step, position);
  if (flow.step == 0) return true;
  const std::uint32_t before = shape_.at_previous_step(flow.step, flow.offset, position);
  return folds_[flow.step - 1].folded(collective.layout.first(flow.step - 1) + before);
}

bool JobThread::next_is_ready(Flow& flow) {
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

std::uint8_t JobThread::backlog(Flow& flow) {
  if (!next_is_ready(flow)) return 0;
  const std::uint64_t left = in_flight(flow.sending).layout.end(flow.step) - flow.send.next();
  // Past the first step, what follows becomes ready as it is folded: ask for little at a time.
  const std::uint64_t most = flow.stage == Stage::aggregation && flow.step == 0 ? 255 : 8;
  return static_cast<std::uint8_t>(std::min(left, most));
}

OutgoingSegment JobThread::outgoing(const Flow& flow, std::uint64_t sequence) const {
  const InFlight& collective = *holder(flow.step, sequence);
  const auto position = static_cast<std::uint32_t>(sequence - collective.layout.first(flow.step));
  const unsigned r = flow.stage == Stage::aggregation ? flow.offset : 0;
  const SegmentRange range = collective.layout.segment(shape_, flow.step, r, position);
  return {collective.order.number, collective.signature, position,
          collective.order.buffer + range.begin, range.bytes};
}

bool JobThread::is_finished(const InFlight& collective) {
  for (std::size_t checked = 0; checked < flows_.size(); ++checked) {
    const Flow& flow = flows_[blocking_flow_];
    const std::uint64_t end = collective.layout.end(flow.step);
    if (flow.send.cumulative() < end || consumed(flow) < end) return false;
    blocking_flow_ = (blocking_flow_ + 1) % flows_.size();
  }
  return true;
}

bool JobThread::finish_completed() {
  const std::uint64_t before = oldest_;
  while (oldest_ < next_ && is_finished(in_flight(oldest_))) ++oldest_;
  if (oldest_ == before) return false;
  session_.report(thread(), oldest_ - 1);
  return true;
}

void JobThread::reset(std::uint64_t last_failed) {
  for (FoldWindow& window : folds_) window.clear();
  for (Flow& flow : flows_) {
    flow.send = protocol::SendWindow(flow_settings_.recovery);
    flow.receive = protocol::ReceiveWindow(1, 0, flow_settings_.acknowledgement);
    flow.sending = last_failed + 1;
  }
  end_of_streams_.fill(0);
  oldest_ = next_ = last_failed + 1;
  disagreement_.reset();
  session_.report(thread(), last_failed);
}

}  // namespace gradcube::dataplane
