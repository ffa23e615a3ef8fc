// The executor: one thread of a plan, for one job at one server. It knows at every moment which
// segments may be sent, adds what arrives, writes results, and tells when a collective has ended.
//
// It executes RunAggregation and RunBroadcast of Algorithm 1 in the BML paper. There is no loop
// over steps to be seen, because nothing waits for a whole step: each segment goes on as soon as it
// can. docs/bml.md says which function executes which line.
//
// It keeps no queue and no state per segment. Streams are consumed and produced in order
// (control/plan/thread_schedule.h), so "may this segment go out?" is a question about another
// stream's progress: the reduce window of the step before, or the receive window of the flow that
// brings results. Its memory is the windows', whatever the size of the gradients.
//
// Why it cannot deadlock: every server sends a stream's segments in the same order, and a receiver
// grants a window beyond the first segment that it has not reduced yet. So the server that owes the
// first unreduced segment of a stream can always send it. Results are written when they arrive and
// wait for nothing.
//
// Several collectives may be in flight. Each begins as soon as it is submitted, behind the earlier
// ones in every stream. A contribution to a collective that this server's trainer has not submitted
// yet waits in its window.
//
// Threads: the engine's only. Errors: what a neighbour sends is checked against this server's own
// request; a disagreement is kept for the engine to report (disagreement()), and the control thread
// then resets the job.
#ifndef GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_
#define GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "aggregation/kernels.h"
#include "control/plan/collective_layout.h"
#include "control/plan/thread_schedule.h"
#include "dataplane/engine/contribution.h"
#include "dataplane/engine/flow.h"
#include "dataplane/engine/reduce_window.h"
#include "dataplane/engine/session.h"

namespace gradcube::dataplane {

CollectiveSignature signature(const CollectiveRequest& request);

// A neighbour's contribution that does not fit this server's request.
struct Disagreement {
  std::uint64_t collective = 0;
  bcube::ServerId peer = 0;
  unsigned thread = 0;
  unsigned step = 0;
};

// An average of integers whose sum does not fit in the type, in one segment.
struct Overflow {
  std::uint64_t collective = 0;
  unsigned thread = 0;
  unsigned step = 0;
  aggregation::DataType dtype{};
  std::uint64_t first_element = 0;  // of the trainer's buffer
  std::uint64_t elements = 0;
};

// A segment to send, in the trainer's buffer.
struct OutgoingSegment {
  std::uint64_t collective;
  CollectiveSignature signature;
  std::uint32_t position;
  const std::uint8_t* payload;
  std::uint32_t bytes;
};

// What all executors of an engine have in common. The references must outlive them.
struct ExecutorContext {
  const control::Plan& plan;
  bcube::ServerId server;
  const aggregation::Kernels& kernels;
  std::uint32_t segment_bytes;  // the most a segment carries; a multiple of control::kUnitBytes
  FlowSettings flows;
};

class PlanExecutor {
 public:
  static constexpr std::uint64_t kMaxInFlight = Session::kMaxInFlight;

  struct InFlight {
    CollectiveRequest request;
    control::CollectiveLayout layout;
    CollectiveSignature signature;
  };

  // Where a segment belongs: its collective, its position there, its bytes of the buffer.
  struct Place {
    const InFlight* collective;
    std::uint32_t position;
    control::SegmentRange range;
  };

  // The job, with its session, must outlive the executor.
  PlanExecutor(const ExecutorContext& context, unsigned thread, EngineJob& job);

  unsigned thread() const { return schedule_.thread(); }
  std::deque<Flow>& flows() { return flows_; }

  // The flow of `stage` with the neighbour that has `digit` at `level`.
  Flow& flow(protocol::Stage stage, unsigned level, unsigned digit);

  // Whether a collective is in flight.
  bool active() const { return oldest_ != next_; }

  // Begins what the session has published since. True if there was something.
  bool begin_published();

  // The place of a sequence of the send stream (step, offset), or with offset 0 of the receive
  // stream of the step. Nothing if no collective in flight has it.
  std::optional<Place> locate(unsigned step, unsigned offset, std::uint64_t sequence) const;

  // Receiving ---------------------------------------------------------------

  // The place of a result in the trainer's buffer. Nothing if it does not belong there: then
  // disagreement() is set if its kind or length is wrong; else its collective is not in flight.
  std::optional<Place> place_of_result(const Flow& flow, std::uint64_t sequence,
                                       const Contribution& result);
  // Writes a result where place_of_result() said.
  static void write_result(const Place& place, const Contribution& result);

  // Holds a contribution and reduces what is now complete. Takes the packet. The sequence lies in
  // the stream's window and is here for the first time.
  void contribute(const Flow& flow, std::uint64_t sequence, const Contribution& contribution);

  // How far the stream that this flow receives has been consumed: what credit is counted from.
  std::uint64_t consumed(const Flow& flow) const {
    return flow.stage == protocol::Stage::aggregation ? reduce_windows_[flow.step].base()
                                                      : flow.receive.cumulative();
  }

  const std::optional<Disagreement>& disagreement() const { return disagreement_; }
  // An overflow since the last reset. Its segment stays unreduced, so the collective cannot
  // complete at any server before the control thread fails it.
  const std::optional<Overflow>& overflow() const { return overflow_; }

  // Sending -----------------------------------------------------------------

  // Whether the next new segment of the flow exists already.
  bool next_is_ready(Flow& flow) const;
  // The same, and the segment.
  std::optional<OutgoingSegment> next_segment(Flow& flow) const;
  // A segment that was sent before and is not acknowledged, by its sequence.
  OutgoingSegment sent_segment(const Flow& flow, std::uint64_t sequence) const;

  // About how many segments wait for credit; at most 255.
  std::uint8_t backlog(Flow& flow) const { return next_is_ready(flow) ? ready_backlog(flow) : 0; }
  // The same where the next segment is known to be ready.
  std::uint8_t ready_backlog(const Flow& flow) const;

  // Ends ----------------------------------------------------------------------

  // Finishes collectives whose results are all here and whose segments are all acknowledged, in
  // order; reports to the session. True if there was one.
  bool finish_completed();

  // Forgets everything in flight; the next collective is `last_failed` + 1, in fresh streams.
  void reset(std::uint64_t last_failed);

 private:
  const InFlight& in_flight(std::uint64_t collective) const {
    return in_flight_[collective % kMaxInFlight];
  }
  // The collective in flight that has this sequence in the streams of step w; null if none has.
  const InFlight* holder(unsigned w, std::uint64_t sequence) const;
  // The collective that has the next new segment of the flow; null if it is not submitted yet.
  const InFlight* sending(Flow& flow) const;
  static std::uint32_t position_of(const InFlight& collective, unsigned w, std::uint64_t sequence) {
    return static_cast<std::uint32_t>(sequence - collective.layout.first(w));
  }
  Place place_in(const InFlight& collective, unsigned w, unsigned r, std::uint32_t position) const {
    return {&collective, position, collective.layout.segment(schedule_, w, r, position)};
  }
  OutgoingSegment outgoing(const Flow& flow, const InFlight& collective,
                           std::uint32_t position) const;

  bool ready(const Flow& flow, const InFlight& collective, std::uint32_t position) const;
  bool partial_sum_is_here(const InFlight& collective, unsigned w, unsigned r,
                           std::uint32_t position) const;
  bool result_is_here(const InFlight& collective, unsigned w, std::uint32_t position) const;

  void begin(std::uint64_t collective);
  void disagree(const InFlight& collective, unsigned w, unsigned r);
  void reduce_if_complete(const InFlight& collective, unsigned w, std::uint64_t sequence);
  bool contributions_agree(const InFlight& collective, unsigned w, std::uint64_t sequence,
                           std::uint32_t bytes);
  // False when the sum overflowed: overflow_ then says where.
  bool reduce(const InFlight& collective, unsigned w, std::uint64_t sequence,
              control::SegmentRange range);
  bool is_finished(const InFlight& collective);
  const Flow& result_flow(unsigned w, unsigned r) const;

  ExecutorContext context_;
  control::ThreadSchedule schedule_;
  Session& session_;
  std::array<std::uint8_t, control::kMaxLevels> step_of_level_{};  // of the thread's steps

  std::deque<Flow> flows_;  // stage by stage, step by step, offsets 1..radix-1: see flow()
  std::array<unsigned, control::kMaxSteps + 1> first_flow_of_step_{};
  std::vector<ReduceWindow> reduce_windows_;  // one per step

  // Collectives in flight: from oldest_ to before next_.
  std::array<InFlight, kMaxInFlight> in_flight_{};
  std::uint64_t oldest_ = 1;
  std::uint64_t next_ = 1;
  std::array<std::uint64_t, control::kMaxSteps> end_of_streams_{};
  std::size_t blocking_flow_ = 0;  // where finish_completed() last found something missing
  std::vector<const void*> sources_;
  std::optional<Disagreement> disagreement_;
  std::optional<Overflow> overflow_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_
