// The executor's receiving half: from a neighbour's segment to a sum or a result in the trainer's
// memory.

#include <algorithm>
#include <cstring>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/flows/port_queue.h"
#include "dataplane/engine/plan_executor.h"

namespace gradcube::dataplane {

using aggregation::Operation;
using control::SegmentRange;
using control::StreamPositions;
using protocol::Stage;

PlanExecutor::Acceptance PlanExecutor::accept(Flow& flow, std::uint64_t sequence,
                                              const Contribution& segment) {
  if (!receives(flow)) return {DropReason::outside_window, std::nullopt};
  if (flow.stage == Stage::aggregation) return {};
  if (sequence >= end_of_streams_[kBroadcast][flow.step]) {
    check_beyond(flow, segment.signature);
    return {};
  }
  const std::optional<SegmentTarget> target = target_of_result(flow, sequence, segment);
  if (!target.has_value()) return {DropReason::disagreement, std::nullopt};
  return {std::nullopt, target};
}

bool PlanExecutor::take(Flow& flow, std::uint64_t sequence, const Contribution& segment,
                        const Acceptance& accepted) {
  if (flow.stage == Stage::broadcast && accepted.target.has_value()) {
    write_result(flow, *accepted.target, segment);
    wake_consumed(flow);
    return false;
  }
  Contribution held = segment;
  held.sequence = sequence;
  if (flow.stage == Stage::aggregation) {
    contribute(flow, sequence, held);
  } else {
    early_results_.hold(number_of(flow), sequence, held);
  }
  return true;
}

// Where the result of a submitted collective belongs; nothing if it does not fit.
std::optional<PlanExecutor::SegmentTarget> PlanExecutor::target_of_result(
    const Flow& flow, std::uint64_t sequence, const Contribution& result) {
  const InFlight* collective = holder(PlanStage::broadcast, flow.step, sequence);
  if (collective == nullptr) return std::nullopt;
  const std::uint32_t position =
      position_of(*collective, PlanStage::broadcast, flow.step, sequence);
  const control::CollectiveLayout& layout = collective->layout;
  const unsigned w = flow.step;
  const auto [r, in_stream, round] =
      layout.part_received(schedule_, PlanStage::broadcast, w, flow.offset, position);
  SegmentRange range = layout.segment(schedule_, w, r, in_stream);
  if (!layout.receives(schedule_, PlanStage::broadcast, w, flow.offset, round)) range.bytes = 0;
  if (collective->fits(result.signature) && range.bytes == result.bytes) {
    return SegmentTarget{collective, range};
  }
  disagree(*collective, result.signature, flow.step, flow.offset);
  return std::nullopt;
}

// BML, Algorithm 1, line 15: the received pieces replace this server's own.
void PlanExecutor::write_result(const Flow& flow, const SegmentTarget& target,
                                const Contribution& result) {
  std::memcpy(target.collective->request.buffer + target.range.begin, result.payload,
              target.range.bytes);
  share_result(*target.collective, target.range);
  // In a ring it is passed on in the same step, too.
  wake_results_before(flow.step + (schedule_.step(flow.step).is_ring() ? 1 : 0));
}

// A result that has come in step w is passed on in all earlier steps, which the broadcast stage
// makes later.
void PlanExecutor::wake_results_before(unsigned w) {
  const std::size_t end = first_flow(Stage::broadcast, w);
  for (std::size_t i = first_flow(Stage::broadcast, 0); i < end; ++i) wake_segment(flows_[i]);
}

void PlanExecutor::contribute(const Flow& flow, std::uint64_t sequence,
                              const Contribution& contribution) {
  reduce_windows_[flow.step].hold(sequence, place_of(flow.step, flow.offset), contribution);
  const InFlight* collective = holder(PlanStage::aggregation, flow.step, sequence);
  if (collective == nullptr) {  // not submitted here yet: see begin_published()
    check_beyond(flow, contribution.signature);
    return;
  }
  if (!collective->fits(contribution.signature)) {
    disagree(*collective, contribution.signature, flow.step, flow.offset);
    return;
  }
  reduce_if_complete(*collective, flow.step, sequence);
}

// The first one counts: those before it can still end.
void PlanExecutor::disagree(std::uint64_t collective, unsigned w, unsigned r) {
  if (disagreement_.has_value() && disagreement_->collective <= collective) return;
  const bcube::ServerId peer = context_.plan().placement().server(schedule_.peer(w, r));
  disagreement_ = {lane_, collective, peer, thread(), w};
}

// A neighbour that is still in an earlier collective has more segments of that one than are
// expected here.
void PlanExecutor::disagree(const InFlight& collective, const CollectiveSignature& theirs,
                            unsigned w, unsigned r) {
  const std::uint64_t own = collective.request.number;
  const std::uint64_t as_they_see_it = in_flight_as(theirs);
  disagree(as_they_see_it == 0 ? own : std::min(own, as_they_see_it), w, r);
}

std::uint64_t PlanExecutor::in_flight_as(const CollectiveSignature& theirs) const {
  const auto behind =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(next_ - 1) - theirs.collective);
  if (behind < 0 || static_cast<std::uint64_t>(behind) >= next_ - oldest_) return 0;
  return next_ - 1 - static_cast<std::uint64_t>(behind);
}

void PlanExecutor::check_beyond(const Flow& flow, const CollectiveSignature& theirs) {
  const std::uint64_t collective = in_flight_as(theirs);
  if (collective != 0) disagree(collective, flow.step, flow.offset);
}

// One contribution or result shows a disagreement: those that would complete a segment may never
// come. What waits for this collective must fit it, and what waits behind its streams must not
// belong to it.
void PlanExecutor::check_what_waits(const InFlight& collective) {
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    const std::uint64_t first = collective.layout.first(PlanStage::aggregation, w);
    const std::uint64_t end = collective.layout.end(PlanStage::aggregation, w);
    for (unsigned r = contributors(w).first; r < contributors(w).end; ++r) {
      const unsigned place = place_of(w, r);
      const Contribution* its = first == end ? nullptr : reduce_windows_[w].waiting(first, place);
      if (its != nullptr && !collective.fits(its->signature)) {
        disagree(collective, its->signature, w, r);
      }
      const Contribution* beyond = reduce_windows_[w].waiting(end, place);
      if (beyond != nullptr) {
        check_beyond(flow(Stage::aggregation, w, r), beyond->signature);
      }
    }
  }
  if (!early_results_.any()) return;
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    const control::Offsets& sources = schedule_.step(w).sources_in(PlanStage::broadcast);
    for (unsigned r = sources.first; r < sources.end; ++r) {
      const Flow& over = flow(Stage::broadcast, w, r);
      const Contribution* beyond =
          early_results_.find(number_of(over), collective.layout.end(PlanStage::broadcast, w));
      if (beyond != nullptr) check_beyond(over, beyond->signature);
    }
  }
}

// The results that came before the trainer submitted their collective.
void PlanExecutor::write_early_results(const InFlight& collective) {
  for (std::size_t i = first_flow(Stage::broadcast, 0); i < flows_.size(); ++i) {
    Flow& over = flows_[i];
    const std::uint64_t first = collective.layout.first(PlanStage::broadcast, over.step);
    const std::uint64_t end = std::min(collective.layout.end(PlanStage::broadcast, over.step),
                                       first + early_results_.window());
    for (std::uint64_t sequence = first; sequence < end; ++sequence) {
      const Contribution* result = early_results_.find(number_of(over), sequence);
      if (result == nullptr) continue;
      // One that does not fit counts as received and consumed: its place may be needed again.
      const std::optional<SegmentTarget> target = target_of_result(over, sequence, *result);
      if (target.has_value()) write_result(over, *target, *result);
      early_results_.release(number_of(over), sequence);
    }
    wake_consumed(over);
  }
}

// Reduces a segment if all that it needs is here, and what waited for it at the following steps.
void PlanExecutor::reduce_if_complete(const InFlight& collective, unsigned w,
                                      std::uint64_t sequence) {
  const control::CollectiveLayout& layout = collective.layout;
  for (;;) {
    if (!reduce_windows_[w].all_arrived(sequence)) return;
    const auto [r, position, round] =
        layout.part_received(schedule_, PlanStage::aggregation, w, 0,
                             position_of(collective, PlanStage::aggregation, w, sequence));
    if (!partial_sum_is_here(collective, w, r, position)) return;
    const SegmentRange range = layout.segment(schedule_, w, r, position);
    if (!contributions_agree(collective, w, sequence, round, range.bytes)) return;
    if (w == 0 && !add_local(collective, range)) return;
    if (collective.request.kind == control::CollectiveKind::all_gather) {
      choose(collective, w, sequence, range);
    } else if (!control::reduces(collective.request.kind)) {
      pass_on(collective, w, sequence, round, range);
    } else if (!reduce(collective, w, sequence, round, range)) {
      return;
    }
    finish_segment(w, sequence);
    if (round + 1 < schedule_.step(w).rounds) {  // the next server of the ring adds itself to it
      wake_segment(flow(Stage::aggregation, w, 1));
      return;
    }
    if (w == schedule_.last_step()) {
      share_result(collective, range);
      if (collective.layout.has_stage(PlanStage::broadcast)) {
        wake_results_before(schedule_.steps());
      }
      return;
    }
    const StreamPositions::NextStep next = layout.positions().at_next_step(w, position);
    ++w;
    if (schedule_.step(w).is_ring()) return enter_ring(collective, w, next);
    if (next.divided) {
      for (unsigned offset = 1; offset < schedule_.step(w).radix; ++offset) {
        wake_segment(flow(Stage::aggregation, w, offset));
      }
    } else if (next.offset != 0) {
      wake_segment(flow(Stage::aggregation, w, next.offset));
      return;
    }
    sequence = layout.first(PlanStage::aggregation, w) + next.position;
  }
}

// What is named (w, radix-1) goes out in the first round, and what is named (w, radix-2-t) comes in
// in round t. Each depends on one round of the stream: so this calls itself no deeper than there
// are steps.
void PlanExecutor::enter_ring(const InFlight& collective, unsigned w,
                              const StreamPositions::NextStep& sum) {
  wake_segment(flow(Stage::aggregation, w, 1));
  const control::CollectiveLayout& layout = collective.layout;
  const std::uint64_t first = layout.first(PlanStage::aggregation, w) + sum.position;
  const std::uint64_t round_length = layout.round_length(w);
  const unsigned rounds = schedule_.step(w).rounds;
  if (sum.divided) {
    for (unsigned t = 0; t < rounds; ++t) {
      reduce_if_complete(collective, w, first + t * round_length);
    }
  } else if (sum.offset < rounds) {
    reduce_if_complete(collective, w, first + (rounds - 1 - sum.offset) * round_length);
  }
}

void PlanExecutor::finish_segment(unsigned w, std::uint64_t sequence) {
  const std::uint64_t consumed_before = reduce_windows_[w].base();
  reduce_windows_[w].finish(sequence);
  if (reduce_windows_[w].base() == consumed_before) return;
  for (unsigned r = contributors(w).first; r < contributors(w).end; ++r) {
    wake_consumed(flow(Stage::aggregation, w, r));
  }
}

bool PlanExecutor::contributions_agree(const InFlight& collective, unsigned w,
                                       std::uint64_t sequence, unsigned round,
                                       std::uint32_t bytes) {
  for (unsigned r = contributors(w).first; r < contributors(w).end; ++r) {
    const Contribution& their = contribution(w, sequence, r);
    const bool carries = collective.layout.receives(schedule_, PlanStage::aggregation, w, r, round);
    if (collective.fits(their.signature) && their.bytes == (carries ? bytes : 0)) continue;
    disagree(collective, their.signature, w, r);
    return false;
  }
  return true;
}

// Here the contributions of aggregation step w are added to the server's own. BML, Algorithm 1,
// line 10: aggregate a's local gradient pieces and the received pieces from N_l(a).
bool PlanExecutor::reduce(const InFlight& collective, unsigned w, std::uint64_t sequence,
                          unsigned round, SegmentRange range) {
  if (range.bytes == 0) return true;
  const CollectiveRequest& request = collective.request;
  const std::uint8_t* own = buffers_.contribution(request, w) + range.begin;
  std::uint8_t* buffer = buffers_.sum(request, w);
  const unsigned summands = schedule_.step(w).is_ring()
                                ? ring_sources(request, w, sequence, round, own)
                                : mesh_sources(w, sequence, own);
  if (!add_sources(collective, w, summands, range, buffer)) return false;
  const bool is_last = w == schedule_.last_step() && round + 1 == schedule_.step(w).rounds;
  const auto [type, operation] = request.carrier;
  if (is_last && operation == Operation::average) {
    const aggregation::DivideFunction divide = context_.kernels.divide(type);
    const std::size_t count = range.bytes / aggregation::element_bytes(type);
    if (divide != nullptr)
      divide(buffer + range.begin, count, context_.plan().placement().trainers());
  }
  return true;
}

bool PlanExecutor::add_sources(const InFlight& collective, unsigned w, unsigned summands,
                               SegmentRange range, std::uint8_t* buffer) {
  const CollectiveRequest& request = collective.request;
  const auto [type, operation] = request.carrier;
  const std::size_t size = aggregation::element_bytes(type);
  const std::size_t count = range.bytes / size;
  const aggregation::ReduceFunction add = context_.kernels.reduce(type, operation);
  if (add(buffer + range.begin, sources_.data(), summands, count)) return true;
  if (!overflow_.has_value() || request.number < overflow_->collective) {
    overflow_ = {lane_, request.number, thread(), w, request.dtype, range.begin / size, count};
  }
  return false;
}

unsigned PlanExecutor::mesh_sources(unsigned w, std::uint64_t sequence, const std::uint8_t* own) {
  const control::ScheduleStep& step = schedule_.step(w);
  for (unsigned i = 0; i < step.radix; ++i) {
    const unsigned r = control::step_pattern::summand(step.radix, step.digit, i);
    sources_[i] = r == 0 ? own : contribution(w, sequence, r).payload;
  }
  return step.radix;
}

// What comes round has one rank's contribution in it in round 0, and one more in each further
// round. A mean of 16-bit floats counts it so often.
unsigned PlanExecutor::ring_sources(const CollectiveRequest& request, unsigned w,
                                    std::uint64_t sequence, unsigned round,
                                    const std::uint8_t* own) {
  const bool is_mean = request.carrier.operation == Operation::average &&
                       context_.kernels.divide(request.carrier.type) == nullptr;
  const unsigned copies = is_mean ? round + 1 : 1;
  const void* theirs = contribution(w, sequence, contributors(w).first).payload;
  std::fill_n(sources_.begin(), copies, theirs);
  sources_[copies] = own;
  return copies + 1;
}

// A broadcast on its way down from the root: at most one neighbour carries something.
void PlanExecutor::pass_on(const InFlight& collective, unsigned w, std::uint64_t sequence,
                           unsigned round, SegmentRange range) {
  for (unsigned r = contributors(w).first; r < contributors(w).end; ++r) {
    if (!collective.layout.receives(schedule_, PlanStage::aggregation, w, r, round)) continue;
    std::memcpy(collective.request.buffer + range.begin, contribution(w, sequence, r).payload,
                range.bytes);
  }
}

// An all_gather on its way to a root: the peer with the digit of a chunk's rank may have it. A rank
// that has it keeps it. What comes round a ring has those of all digits that it has passed.
void PlanExecutor::choose(const InFlight& collective, unsigned w, std::uint64_t sequence,
                          SegmentRange range) {
  for (control::Rank rank = 0; rank < context_.plan().ranks(); ++rank) {
    const SegmentRange part = collective.layout.chunk_part(schedule_, rank, range);
    const unsigned r = schedule_.offset_of_rank(w, rank);
    if (part.bytes == 0 || r == 0) continue;
    const Contribution& their = contribution(w, sequence, std::max(r, contributors(w).first));
    std::memcpy(collective.request.buffer + part.begin, their.payload + (part.begin - range.begin),
                part.bytes);
  }
}

}  // namespace gradcube::dataplane
