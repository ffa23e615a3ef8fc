// The executor: one thread of one lane of a job, at one server. It knows at every moment which
// segments may be sent, adds what arrives, writes results, and tells when a collective has ended.
//
// It executes RunAggregation and RunBroadcast of Algorithm 1 in the BML paper. There is no loop
// over steps to be seen, because nothing waits for a whole step: each segment goes on as soon as it
// can. docs/bml.md says which function executes which line.
//
// It keeps no queue and no state per segment. Streams are consumed and produced in order
// (control/plan/stream_positions.h), so "may this segment go out?" is a question about another
// stream's progress: the reduce window of the step before, or the receive window of the flow that
// brings results. Its memory is the windows', whatever the size of the gradients.
//
// Why it cannot deadlock: every server sends a stream's segments in the same order, and a receiver
// grants a window beyond the first segment that it has not reduced yet. So the server that owes the
// first unreduced segment of a stream can always send it. In a ring that segment needs one of an
// earlier round, which is here, as it comes before in the stream that the sender receives. Results
// are written when they arrive and wait for nothing.
//
// Rings (control/plan/base/step_pattern.h). A step's flows are one to the next server, which only
// sends, and one from the server before, which only receives; in a mesh each flow does both. A
// stream has the rounds one behind the other, so a segment waits for the one that is a round's
// length before it in the stream that comes in. Nothing else differs: the same arithmetic, with one
// round, is a mesh's.
//
// Roots. A flow between the root of a step and another rank carries contributions to the root in
// the one stage and results from it in the other. A rank that has given all to a root has no flows
// in later steps.
//
// Several collectives may be in flight. Each begins as soon as it is submitted, behind the earlier
// ones in every stream. A contribution to a collective that this server's trainer has not submitted
// yet waits in its window, and so does a result.
//
// Kinds (control/plan/collective_kind.h). A reduce_scatter has no broadcast stage and an all_gather
// no aggregation stage: the streams of that stage have no length. On a plan with a step of the
// pattern root both have both stages (control/plan/collective_layout.h). In a broadcast and a
// reduce, a segment that has nothing to carry is sent empty, so the streams stay aligned and every
// exchange is checked.
//
// Doubling. No sum is written where a contribution lies: step_buffers.h says which buffer is whose.
// Each peer gets all of a sum, so this server's trainers are added before the first step.
//
// Ends. A collective ends here when all its results are here and the neighbours have all that was
// sent. On the embedded fabric a neighbour that holds a contribution holds this trainer's memory. A
// result that returns shows that the contribution was used, so contributions need no
// acknowledgement. The results that were sent do. In a reduce_scatter, and where steps double,
// nothing returns, so it ends only when the neighbours have said that they consumed what they got.
// The receiver knows the length of each stream, so it acknowledges the last segment without delay:
// sender_waits().
//
// It is a FlowUser (flow_user.h): the engine asks it what to send and gives it what arrives.
//
// Several trainers of this server (control/plan/local_stage.h). To the plan they are one rank, with
// the buffer of one of them. What the first step takes up is made from all of their buffers just
// before it is sent or added to; what has its result is copied to those that need it. If they have
// submitted different collectives, no segment fits the collective.
//
// Several plans (control/plan/plan_choice.h). A lane that chooses has executors for the threads of
// each of its plans, with streams of their own. Each sees all collectives of the lane, and skips
// those that another plan runs: they have no streams here, and are finished at once. They stay in
// flight until they have ended in the whole lane. So a server that takes a collective for a larger
// one, and runs another plan, meets one that has it in flight: a segment of it lies beyond the
// streams there, which shows the disagreement.
//
// Failures. What a neighbour sends is checked against this server's own request. A disagreement, as
// an overflow, is kept for the engine to report, and the job is reset later. Until then the
// collective, and what lies behind it in the lane, cannot end. All before it goes on to its end:
// every stream carries it first, and it never waits for what follows.
//
// Threads: the engine's only.
#ifndef GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_
#define GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "aggregation/kernels.h"
#include "control/plan/collective_layout.h"
#include "control/plan/local_stage.h"
#include "control/plan/plan_choice.h"
#include "control/plan/service_order.h"
#include "control/plan/thread_schedule.h"
#include "dataplane/engine/collective_faults.h"
#include "dataplane/engine/early_results.h"
#include "dataplane/engine/flows/contribution.h"
#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/flows/flow_user.h"
#include "dataplane/engine/reduce_window.h"
#include "dataplane/engine/session/session.h"
#include "dataplane/engine/step_buffers.h"

namespace gradcube::dataplane {

CollectiveSignature signature(const CollectiveRequest& request);

// What all executors of an engine have in common. The references must outlive them.
struct ExecutorContext {
  const control::PlanChoice& choice;  // of the lane
  unsigned number_of_plan;            // in it, of the one that runs here
  control::Rank rank;                 // this server's, in the plan
  const aggregation::Kernels& kernels;
  std::uint32_t segment_bytes;  // the most a segment carries; a multiple of control::kUnitBytes
  std::uint32_t block_bytes;    // short pieces travel together up to so many
  unsigned window;              // the most segments that a neighbour may be ahead, per flow
  FlowSettings flows;

  const control::Plan& plan() const { return choice.plan(number_of_plan); }
};

class PlanExecutor {
 public:
  struct InFlight {
    CollectiveRequest request;
    control::CollectiveLayout layout;
    CollectiveSignature signature;
    control::LocalStage local;
    // Of this server's trainers, if they are several. request.buffer is that of local.base().
    std::array<std::uint8_t*, control::kMaxLocalTrainers> buffers;
    // Of an all_gather: the positions of the server's own piece that hold all trainers' chunks.
    std::uint32_t gathered;

    // Where this server's trainers have submitted different collectives, nothing fits, whatever a
    // neighbour sends: their buffers have different lengths.
    bool fits(const CollectiveSignature& theirs) const {
      return request.agreed && signature == theirs;
    }
  };

  // Where a segment belongs: its collective, and its bytes of the buffer.
  struct SegmentTarget {
    const InFlight* collective;
    control::SegmentRange range;  // of no bytes where the segment carries none
  };

  // The job, with its session, must outlive the executor.
  PlanExecutor(const ExecutorContext& context, unsigned lane, unsigned thread, EngineJob& job);

  EngineJob& job() const { return job_; }
  unsigned lane() const { return lane_; }
  // Among those of all plans of the lane.
  unsigned thread() const { return first_thread_ + schedule_.thread(); }
  std::deque<Flow>& flows() { return flows_; }

  // The flow of a step of the stage with the neighbour at this offset, with whom it has one.
  Flow& flow(protocol::Stage stage, unsigned step, unsigned offset) {
    return flows_[first_flow(stage, step) + schedule_.step(step).number_of_peer(offset)];
  }

  // When a port serves the flow, within a collective (control/plan/service_order.h). steps: the
  // most that a plan of the lane has.
  unsigned service_place(const Flow& flow, unsigned steps) const {
    return control::service_place(context_.plan(), schedule_.thread(), stage_of(flow), flow.step,
                                  steps);
  }

  // Whether a collective is in flight.
  bool active() const { return oldest_ != next_; }
  // Whether the session has published collectives that it has no room for yet.
  bool has_more() const { return next_ <= session_.published(lane_); }

  // Begins what the session has published since. True if there was something.
  bool begin_published();

  // Receiving ---------------------------------------------------------------

  struct Acceptance {
    std::optional<DropReason> refused;
    // Of a result: its place in the trainer's buffer; nothing if its collective is not submitted
    // here yet.
    std::optional<SegmentTarget> target;
  };
  // A result must fit the collective that it belongs to: else it is refused, and disagreement() is
  // set. All else is accepted: what belongs to a collective that is not submitted here yet waits.
  Acceptance accept(Flow& flow, std::uint64_t sequence, const Contribution& segment);
  // Writes a result. Holds a contribution and reduces what is now complete. The sequence lies in
  // the stream's window and is here for the first time.
  bool take(Flow& flow, std::uint64_t sequence, const Contribution& segment,
            const Acceptance& accepted);

  // How far the stream that this flow receives has been consumed: what credit is counted from.
  std::uint64_t consumed(const Flow& flow) const {
    if (!receives(flow)) return 0;
    if (flow.stage == protocol::Stage::aggregation) return reduce_windows_[flow.step].base();
    // What lies beyond the submitted collectives is held.
    return std::min(flow.receive.cumulative(), end_of_streams_[kBroadcast][flow.step]);
  }

  // Which collective is granted next: in their order the flows' credit is handed out.
  std::uint64_t granting(Flow& flow) const {
    flow.granting = std::max(flow.granting, oldest_);
    while (flow.granting < next_ &&
           flow.receive.limit() >= in_flight(flow.granting).layout.end(stage_of(flow), flow.step)) {
      ++flow.granting;
    }
    return flow.granting;
  }

  // Whether the neighbour's collective cannot end before it hears that what this flow has consumed,
  // from `first` on, is here; false as long as a segment of the same collective will tell it.
  bool sender_waits(const Flow& flow, std::uint64_t first) const;

  // Since the last reset, the disagreement over the first collective of those that were met. From
  // that collective on, nothing new is sent and nothing ends here.
  const std::optional<Disagreement>& disagreement() const { return disagreement_; }
  // The same of the overflows. The segment stays unreduced, so the collective cannot complete
  // before the control thread fails it, at this server or at one that needs the segment.
  const std::optional<Overflow>& overflow() const { return overflow_; }
  // Which of both the engine has reported, by their collectives; 0 for none. The engine writes it.
  struct Told {
    std::uint64_t disagreement = 0;
    std::uint64_t overflow = 0;
  };
  Told& told() { return told_; }

  // Sending -----------------------------------------------------------------

  // Whether the next new segment of the flow exists already.
  bool next_is_ready(Flow& flow) const;
  // The same, and the segment.
  std::optional<OutgoingSegment> next_segment(Flow& flow);
  // A segment that was sent before and is not acknowledged, by its sequence.
  OutgoingSegment sent_segment(const Flow& flow, std::uint64_t sequence) const;

  // About how many segments wait for credit; at most 255.
  std::uint8_t backlog(Flow& flow) const { return next_is_ready(flow) ? ready_backlog(flow) : 0; }
  // The same where the next segment is known to be ready.
  std::uint8_t ready_backlog(Flow& flow) const;

  // Ends ----------------------------------------------------------------------

  // Finishes collectives that have ended here, in order; reports to the session. True if there was
  // one.
  bool finish_completed(protocol::Nanoseconds now);

  // Forgets everything in flight; the next collective is `last_failed` + 1, in fresh streams.
  void reset(std::uint64_t last_failed);

 private:
  const InFlight& in_flight(std::uint64_t collective) const {
    return in_flight_[collective % Session::kMostBegun];
  }
  using PlanStage = control::Stage;
  static constexpr std::size_t kBroadcast = static_cast<std::size_t>(PlanStage::broadcast);
  static PlanStage stage_of(const Flow& flow) { return static_cast<PlanStage>(flow.stage); }
  // Of a flow that never sends, or never receives: the collective that it has reached there.
  static constexpr std::uint64_t kNone = UINT64_MAX;

  // Which of its two streams a flow has: both in a mesh.
  bool sends(const Flow& flow) const {
    return schedule_.step(flow.step).targets_in(stage_of(flow)).contains(flow.offset);
  }
  bool receives(const Flow& flow) const {
    return schedule_.step(flow.step).sources_in(stage_of(flow)).contains(flow.offset);
  }
  void begin_streams(Flow& flow, std::uint64_t collective) const {
    flow.sending = sends(flow) ? collective : kNone;
    flow.granting = receives(flow) ? collective : kNone;
    flow.sends_short = false;
    flow.plain_end = flow.ready_end = 0;
  }
  // The place among a stage's flows.
  unsigned number_of(const Flow& flow) const {
    return first_flow_of_step_[flow.step] + schedule_.step(flow.step).number_of_peer(flow.offset);
  }
  // That of the contribution of the peer at offset r among those to a segment of step w, from 1.
  unsigned place_of(unsigned w, unsigned r) const { return r - contributors(w).first + 1; }
  // The peers whose contributions are added in step w.
  const control::Offsets& contributors(unsigned w) const {
    return schedule_.step(w).sources_in(PlanStage::aggregation);
  }
  const Contribution& contribution(unsigned w, std::uint64_t sequence, unsigned r) const {
    return reduce_windows_[w].contribution(sequence, place_of(w, r));
  }

  // The collective in flight that has this sequence in a stage's streams of step w; null if none
  // has.
  const InFlight* holder(PlanStage stage, unsigned w, std::uint64_t sequence) const;
  // The collective that has the next new segment of the flow; null if it is not submitted yet.
  const InFlight* sending(Flow& flow) const;
  static std::uint32_t position_of(const InFlight& collective, PlanStage stage, unsigned w,
                                   std::uint64_t sequence) {
    return static_cast<std::uint32_t>(sequence - collective.layout.first(stage, w));
  }
  OutgoingSegment outgoing(const Flow& flow, const InFlight& collective,
                           std::uint32_t position) const;

  std::uint64_t count_ready(const Flow& flow) const;
  bool ready(const Flow& flow, const InFlight& collective, std::uint32_t position) const;
  bool partial_sum_is_here(const InFlight& collective, unsigned w, unsigned r,
                           std::uint32_t position) const;
  bool result_is_here(const InFlight& collective, unsigned w, std::uint32_t position) const;

  void begin(std::uint64_t collective);
  void begin_local(InFlight& entry);
  // Where steps double: makes what this server contributes.
  void take_contribution(const InFlight& collective);
  // Before a segment is sent for the first time. False when a sum overflowed: nothing of the
  // collective, or of a later one, may be sent any more.
  bool take_up(const Flow& flow, InFlight& collective, std::uint32_t position);
  // Makes a range that the first step takes up from the buffers of all trainers. False when the sum
  // overflowed: overflow_ then says where. Where steps double take_contribution() has made it.
  bool add_local(const InFlight& collective, control::SegmentRange range);
  // Adds a range of the buffers of several trainers into another one. False as above.
  bool add_trainers(const InFlight& collective, control::SegmentRange range, std::uint8_t* buffer);
  // Copies a range with its result to the trainers that need it.
  static void share_result(const InFlight& collective, control::SegmentRange range);
  bool runs(const CollectiveRequest& request) const {
    return context_.choice.chosen(request.kind, request.bytes) == context_.number_of_plan;
  }
  void check_what_waits(const InFlight& collective);
  void write_early_results(const InFlight& collective);
  // Of a segment beyond the streams' present ends: whether its sender sees it as part of a
  // collective that has begun here, which then has other streams there than here.
  void check_beyond(const Flow& flow, const CollectiveSignature& theirs);
  std::optional<SegmentTarget> target_of_result(const Flow& flow, std::uint64_t sequence,
                                                const Contribution& result);
  void write_result(const Flow& flow, const SegmentTarget& target, const Contribution& result);
  void contribute(const Flow& flow, std::uint64_t sequence, const Contribution& contribution);
  void disagree(std::uint64_t collective, unsigned w, unsigned r);
  // Of a segment that lies in this collective's stream here and has another signature.
  void disagree(const InFlight& collective, const CollectiveSignature& theirs, unsigned w,
                unsigned r);
  // Their collective, of those in flight here; 0 if it is none of them.
  std::uint64_t in_flight_as(const CollectiveSignature& theirs) const;
  void reduce_if_complete(const InFlight& collective, unsigned w, std::uint64_t sequence);
  // Marks a segment as reduced, and wakes what waits for its room.
  void finish_segment(unsigned w, std::uint64_t sequence);
  // What waited at the ring of step w for a sum of the step before, which is here now.
  void enter_ring(const InFlight& collective, unsigned w,
                  const control::StreamPositions::NextStep& sum);
  void wake_results_before(unsigned w);
  bool contributions_agree(const InFlight& collective, unsigned w, std::uint64_t sequence,
                           unsigned round, std::uint32_t bytes);
  // Into sources_: what is added for a segment, in the order of addition. Returns their number.
  unsigned mesh_sources(unsigned w, std::uint64_t sequence, const std::uint8_t* own);
  unsigned ring_sources(const CollectiveRequest& request, unsigned w, std::uint64_t sequence,
                        unsigned round, const std::uint8_t* own);
  // False when the sum overflowed: overflow_ then says where.
  bool reduce(const InFlight& collective, unsigned w, std::uint64_t sequence, unsigned round,
              control::SegmentRange range);
  // The same of the first `summands` of sources_, into the range of a buffer.
  bool add_sources(const InFlight& collective, unsigned w, unsigned summands,
                   control::SegmentRange range, std::uint8_t* buffer);
  void pass_on(const InFlight& collective, unsigned w, std::uint64_t sequence, unsigned round,
               control::SegmentRange range);
  void choose(const InFlight& collective, unsigned w, std::uint64_t sequence,
              control::SegmentRange range);
  bool is_finished(const InFlight& collective, protocol::Nanoseconds now);
  bool is_sent(Flow& flow, const InFlight& collective, protocol::Nanoseconds now);
  void await_consumed(protocol::Nanoseconds now);
  // The flow that brings back the results of the send stream (w, r).
  const Flow& result_flow(unsigned w, unsigned r) const {
    const control::ScheduleStep& step = schedule_.step(w);
    return flows_[first_flow(protocol::Stage::broadcast, w) +
                  step.number_of_peer(std::max(r, step.first_sent))];
  }
  // The place in flows_ of the step's flow at offset 1.
  std::size_t first_flow(protocol::Stage stage, unsigned w) const {
    return first_flow_of_step_[w] +
           (stage == protocol::Stage::broadcast ? first_flow_of_step_[schedule_.steps()] : 0);
  }

  ExecutorContext context_;
  EngineJob& job_;
  unsigned lane_;
  unsigned first_thread_;
  control::ThreadSchedule schedule_;
  Session& session_;

  std::deque<Flow> flows_;  // stage by stage, step by step, by ascending offset: see flow()
  std::array<unsigned, control::kMaxSteps + 1> first_flow_of_step_{};
  std::vector<ReduceWindow> reduce_windows_;  // one per step
  EarlyResults early_results_;
  StepBuffers buffers_;

  // Collectives in flight: from oldest_ to before next_.
  std::array<InFlight, Session::kMostBegun> in_flight_{};
  std::uint64_t oldest_ = 1;
  std::uint64_t next_ = 1;
  std::uint64_t unfinished_ = 1;  // the first that has not ended here
  control::CollectiveLayout::StageSequences end_of_streams_{};
  std::size_t blocking_flow_ = 0;  // where finish_completed() last found something missing
  std::vector<const void*> sources_;
  std::optional<Disagreement> disagreement_;
  std::optional<Overflow> overflow_;
  std::uint64_t unsendable_ = UINT64_MAX;  // from this collective on: a local sum overflowed
  // Of each flow of the first step: the sequence from which on nothing is taken up yet.
  std::vector<std::uint64_t> taken_up_;
  Told told_;
};
static_assert(FlowUser<PlanExecutor>);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_
