// The executor's streams: how collectives begin, where their segments lie, and how they end.

#include "dataplane/engine/plan_executor.h"

#include <stdexcept>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/flows/port_queue.h"
#include "dataplane/engine/flows/step_flows.h"

namespace gradcube::dataplane {

using protocol::Stage;

// A segment header has four bits for each of type and operation, and eight for the type where
// nothing is added (docs/protocol.md).
static_assert(aggregation::kOperations <= 16 && aggregation::kTypeNumbers <= 256);

CollectiveSignature signature(const CollectiveRequest& request) {
  // Odd, so that counts which differ in their high halves alone do not meet.
  constexpr std::uint64_t kFold = 0x9E3779B1;
  const std::uint64_t count = request.count ^ (request.count >> 32) * kFold;
  auto type = static_cast<unsigned>(request.dtype);
  if (control::reduces(request.kind)) {
    type = aggregation::element_type(request.dtype).when_added |
           static_cast<unsigned>(request.operation) << 4;
  }
  const bool gathers = request.kind == control::CollectiveKind::all_gather;
  const auto root = gathers ? static_cast<std::uint32_t>(request.gathered) : request.root;
  return {static_cast<std::uint32_t>(request.number), static_cast<std::uint32_t>(count),
          static_cast<std::uint16_t>(root), static_cast<std::uint8_t>(request.kind),
          static_cast<std::uint8_t>(type)};
}

namespace {

unsigned count_flows(const control::ThreadSchedule& schedule) {
  unsigned flows = 0;
  for (unsigned w = 0; w < schedule.steps(); ++w) flows += schedule.step(w).peers;
  return flows;
}

}  // namespace

PlanExecutor::PlanExecutor(const ExecutorContext& context, unsigned lane, unsigned thread,
                           EngineJob& job)
    : context_(context),
      job_(job),
      lane_(lane),
      first_thread_(context.choice.first_thread(context.number_of_plan)),
      schedule_(context.plan(), context.rank, thread),
      session_(job.session()),
      early_results_(count_flows(schedule_), context.window),
      buffers_(schedule_) {
  unsigned count = 0;
  unsigned widest = 1;
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    first_flow_of_step_[w] = count;
    const control::ScheduleStep& step = schedule_.step(w);
    reduce_windows_.emplace_back(contributors(w).count());
    count += step.peers;
    widest = std::max(widest, step.radix);
  }
  first_flow_of_step_[schedule_.steps()] = count;
  sources_.resize(std::max(widest, session_.trainers()));
  taken_up_.resize(schedule_.step(0).peers);
  // BML, Algorithm 1, lines 6-7 and 11-13: the steps' levels, and each server s in N_l(a).
  for_each_step_flow(context.plan(), context.rank, schedule_, [&](const FlowKey& key) {
    flows_.emplace_back(key, job, *this, context.flows, context.window);
    begin_streams(flows_.back(), next_);
  });
}

bool PlanExecutor::begin_published() {
  const std::uint64_t published = session_.published(lane_);
  const std::uint64_t first_new = next_;
  while (next_ <= published && next_ - oldest_ < Session::kMostBegun) begin(next_++);
  if (next_ == first_new) return false;
  for (Flow& flow : flows_) {
    sending(flow);  // so that the scheduler knows its collective
    wake_segment(flow);
  }
  if (!schedule_.step(0).sums) return true;
  // An overflow has left a wrapped sum in the buffer. To reduce that segment again could succeed,
  // with a wrong result; what lies behind it fails with it. What lies before it still ends.
  const std::uint64_t end = overflow_.has_value() ? overflow_->collective : next_;
  // Contributions that came before the trainer's own submission.
  const std::uint64_t base = reduce_windows_[0].base();
  for (std::uint64_t sequence = base; sequence < base + ReduceWindow::kWindow; ++sequence) {
    if (!reduce_windows_[0].all_arrived(sequence)) continue;
    const InFlight* collective = holder(PlanStage::aggregation, 0, sequence);
    if (collective == nullptr || collective->request.number >= end) continue;
    reduce_if_complete(*collective, 0, sequence);
  }
  return true;
}

void PlanExecutor::begin(std::uint64_t collective) {
  InFlight& entry = in_flight_[collective % Session::kMostBegun];
  entry.request = session_.request(lane_, collective);
  entry.signature = signature(entry.request);
  if (runs(entry.request)) {
    begin_local(entry);
    const RankOrder& order = job_.rank_order;
    entry.layout = control::CollectiveLayout(
        schedule_,
        {entry.request.kind, order.in_plan(entry.request.root / session_.trainers()),
         entry.request.bytes, order.chunk_of_rank()},
        context_.segment_bytes, end_of_streams_, context_.block_bytes);
    if (schedule_.plan_doubles()) take_contribution(entry);
  } else {
    entry.layout = control::CollectiveLayout::skipped(end_of_streams_);
  }
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    for (const PlanStage stage : {PlanStage::aggregation, PlanStage::broadcast}) {
      end_of_streams_[static_cast<std::size_t>(stage)][w] = entry.layout.end(stage, w);
    }
  }
  check_what_waits(entry);
  if (early_results_.any()) write_early_results(entry);
}

const PlanExecutor::InFlight* PlanExecutor::holder(PlanStage stage, unsigned w,
                                                   std::uint64_t sequence) const {
  if (sequence >= end_of_streams_[static_cast<std::size_t>(stage)][w]) return nullptr;
  // Mostly the oldest one has it.
  for (std::uint64_t collective = oldest_; collective < next_; ++collective) {
    const InFlight& entry = in_flight(collective);
    if (sequence >= entry.layout.end(stage, w)) continue;
    return sequence >= entry.layout.first(stage, w) ? &entry : nullptr;
  }
  return nullptr;
}

// With a broadcast stage, what comes back shows that a contribution was used: a neighbour sends
// nothing of a segment, not even an empty one, before it has reduced it. Without one, the neighbour
// has to say so. In a ring results come from the server before: those of all parts, and each needed
// the contribution of the next server, which had this one's in it.
bool PlanExecutor::is_sent(Flow& flow, const InFlight& collective, protocol::Nanoseconds now) {
  if (!sends(flow)) return true;
  const std::uint64_t end = collective.layout.end(stage_of(flow), flow.step);
  if (flow.stage == Stage::broadcast) return flow.send.cumulative() >= end;
  if (collective.layout.has_stage(PlanStage::broadcast)) {
    if (flow.send.cumulative() >= end) return true;
    if (consumed(result_flow(flow.step, flow.offset)) <
        collective.layout.end(PlanStage::broadcast, flow.step)) {
      return false;
    }
    const unsigned shown = flow.send.take_delivered(end, now);
    if (flow.neighbour != nullptr) flow.neighbour->acknowledged.add(shown);
    // Its timer may be one for what has arrived, and there is none for the rest.
    if (shown != 0) wake_answer(flow);
    return flow.send.cumulative() >= end;  // a neighbour may answer what it was never sent
  }
  if (flow.send.consumed() >= end) return true;
  if (flow.send.cumulative() >= end) await_consumed(now);
  return false;
}

// The end of a stream that something answers needs no word: a contribution's answer is the result,
// and a result goes both ways, so that the later of the two carries the word. In a ring nothing
// goes back to the server before.
bool PlanExecutor::sender_waits(const Flow& flow, std::uint64_t first) const {
  const InFlight* collective = holder(stage_of(flow), flow.step, first);
  if (collective == nullptr) return false;
  const std::uint64_t end = collective->layout.end(stage_of(flow), flow.step);
  if (consumed(flow) < end) return false;
  if (flow.stage == Stage::aggregation && collective->layout.has_stage(PlanStage::broadcast)) {
    return false;
  }
  return !sends(flow) || flow.send.next() >= end;
}

// Of all neighbours at once, so that lost news of one does not delay the question to the next.
void PlanExecutor::await_consumed(protocol::Nanoseconds now) {
  const std::size_t contributions = first_flow(Stage::broadcast, 0);
  for (std::size_t i = 0; i < contributions; ++i) {
    if (!sends(flows_[i])) continue;
    flows_[i].send.await_consumed(now);
    wake_answer(flows_[i]);  // which arms the flow's timer
  }
}

bool PlanExecutor::is_finished(const InFlight& collective, protocol::Nanoseconds now) {
  if (collective.layout.is_skipped()) return true;
  for (std::size_t checked = 0; checked < flows_.size(); ++checked) {
    Flow& flow = flows_[blocking_flow_];
    const bool waits =
        receives(flow) && consumed(flow) < collective.layout.end(stage_of(flow), flow.step);
    if (waits || !is_sent(flow, collective, now)) return false;
    blocking_flow_ = (blocking_flow_ + 1) % flows_.size();
  }
  return true;
}

bool PlanExecutor::finish_completed(protocol::Nanoseconds now) {
  const std::uint64_t end = disagreement_.has_value() ? disagreement_->collective : next_;
  const std::uint64_t before = unfinished_;
  while (unfinished_ < end && is_finished(in_flight(unfinished_), now)) ++unfinished_;
  if (unfinished_ != before) session_.report(lane_, thread(), unfinished_ - 1);
  while (oldest_ < unfinished_ &&
         (!in_flight(oldest_).layout.is_skipped() || session_.completed(lane_) >= oldest_)) {
    ++oldest_;
  }
  return unfinished_ != before;
}

void PlanExecutor::reset(std::uint64_t last_failed) {
  for (ReduceWindow& window : reduce_windows_) window.clear();
  early_results_.clear();
  for (Flow& flow : flows_) {
    flow.send = protocol::SendWindow(context_.flows.recovery, context_.window);
    flow.receive = protocol::ReceiveWindow(context_.window, 0, context_.flows.acknowledgement);
    begin_streams(flow, last_failed + 1);
  }
  end_of_streams_ = {};
  oldest_ = unfinished_ = next_ = last_failed + 1;
  disagreement_.reset();
  overflow_.reset();
  unsendable_ = UINT64_MAX;
  std::fill(taken_up_.begin(), taken_up_.end(), 0);
  told_ = {};
  session_.report(lane_, thread(), last_failed);
}

}  // namespace gradcube::dataplane
