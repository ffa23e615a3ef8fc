// What the executor does where its server has several trainers (control/plan/local_stage.h).

#include <algorithm>
#include <cstring>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/plan_executor.h"

namespace gradcube::dataplane {

using control::SegmentRange;
using control::StreamPositions;

static_assert(control::kMaxLocalTrainers == shared::kMaxLocalTrainers);

void PlanExecutor::begin_local(InFlight& entry) {
  entry.gathered = 0;
  entry.local = {};
  const unsigned trainers = session_.trainers();
  if (trainers == 1) return;
  CollectiveRequest& request = entry.request;
  entry.local =
      control::LocalStage(trainers, job_.rank_order.as_seen(context_.rank), context_.plan().ranks(),
                          request.kind, request.root, request.bytes);
  for (unsigned local = 0; local < trainers; ++local) {
    entry.buffers[local] = session_.request(lane_, request.number, local).buffer;
  }
  request.buffer = entry.buffers[entry.local.base()];
  if (!request.agreed) disagree(request.number, 0, 0);
}

void PlanExecutor::take_contribution(const InFlight& collective) {
  const CollectiveRequest& request = collective.request;
  // Of different collectives the buffers have different lengths, and none of it is sent.
  if (!request.agreed || request.bytes == 0) return;
  const SegmentRange all{0, static_cast<std::uint32_t>(request.bytes)};
  std::uint8_t* const taken = buffers_.contribution(request, 0);
  if (collective.local.alone()) {
    std::memcpy(taken, request.buffer, request.bytes);
  } else if (!add_trainers(collective, all, taken)) {
    unsendable_ = std::min(unsendable_, request.number);
  }
}

bool PlanExecutor::take_up(const Flow& flow, InFlight& collective, std::uint32_t position) {
  if (schedule_.plan_doubles()) return true;
  const control::CollectiveLayout& layout = collective.layout;
  const unsigned w = flow.step;
  if (stage_of(flow) == PlanStage::aggregation) {
    // What goes out in a later round of a ring has come in before.
    if (w != 0 || position >= layout.round_length(w)) return true;
    std::uint64_t& next = taken_up_[number_of(flow)];
    const std::uint64_t sequence = flow.send.next();
    if (sequence < next) return true;  // it could not leave then
    next = sequence + 1;
    const auto [r, q, round] =
        layout.part_sent(schedule_, PlanStage::aggregation, w, flow.offset, position);
    if (add_local(collective, layout.segment(schedule_, w, r, q))) return true;
    unsendable_ = std::min(unsendable_, collective.request.number);
    return false;
  }
  if (layout.has_stage(PlanStage::aggregation) || position >= layout.round_length(w)) return true;
  const StreamPositions::ResultSource source = layout.positions().result_source(w, position);
  if (!source.own) return true;
  while (collective.gathered <= source.position) {
    const SegmentRange range =
        layout.segment(schedule_, schedule_.last_step(), 0, collective.gathered++);
    add_local(collective, range);
    share_result(collective, range);
  }
  return true;
}

// HiPS and BlueConnect reduce among the processors of one server first.
bool PlanExecutor::add_local(const InFlight& collective, SegmentRange range) {
  if (schedule_.plan_doubles()) return collective.request.number < unsendable_;
  const control::LocalStage& local = collective.local;
  if (local.alone() || range.bytes == 0) return true;
  if (control::reduces(collective.request.kind)) {
    return add_trainers(collective, range, collective.request.buffer);
  }
  for (unsigned i = 0; i < local.trainers(); ++i) {
    const SegmentRange part = local.given(i, range);
    std::memcpy(collective.request.buffer + part.begin, collective.buffers[i] + part.begin,
                part.bytes);
  }
  return true;
}

bool PlanExecutor::add_trainers(const InFlight& collective, SegmentRange range,
                                std::uint8_t* buffer) {
  const unsigned trainers = collective.local.trainers();
  for (unsigned i = 0; i < trainers; ++i) sources_[i] = collective.buffers[i] + range.begin;
  return add_sources(collective, 0, trainers, range, buffer);
}

void PlanExecutor::share_result(const InFlight& collective, SegmentRange range) {
  const control::LocalStage& local = collective.local;
  if (local.alone()) return;
  for (unsigned i = 0; i < local.trainers(); ++i) {
    const SegmentRange part = local.wanted(i, range);
    std::memcpy(collective.buffers[i] + part.begin, collective.request.buffer + part.begin,
                part.bytes);
  }
}

}  // namespace gradcube::dataplane
