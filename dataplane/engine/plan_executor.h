// The executor: one thread of a plan, for one job at one server. It knows at every moment which
// segments may be sent, adds what arrives, writes results, and tells when a collective has ended.
//
// It keeps no queue and no state per segment. Streams are consumed and produced in order
// (thread_shape.h), so "may this segment go out?" is a question about another stream's progress:
// the reduce window of the step before, or the receive window of the flow that brings results. Its
// memory is the windows', whatever the size of the gradients.
//
// Order makes it free of deadlock: every server sends a stream's segments in the same order, and a
// receiver grants a window beyond the first segment that it has not reduced yet; so the first
// unreduced segment of a stream can always be sent by whoever owes it. Results are written the
// moment they arrive and never wait for anything.
//
// Several collectives may be in flight; each begins as soon as it is submitted, behind its
// predecessors in every stream. A contribution to a collective that this server's trainer has not
// submitted yet waits in its window.
//
// Threads: the engine's only. Errors: what a neighbour sends is checked against this server's own
// order; a disagreement is kept for the engine to report (disagreement()), and the job is then
// reset by the control thread.
//
// Implements RunAggregation and RunBroadcast of Algorithm 1 in the BML paper.
#ifndef GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_
#define GRADCUBE_DATAPLANE_ENGINE_PLAN_EXECUTOR_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "aggregation/kernels.h"
#include "dataplane/engine/collective_layout.h"
#include "dataplane/engine/flow.h"
#include "dataplane/engine/reduce_window.h"
#include "dataplane/engine/session.h"
#include "dataplane/engine/thread_schedule.h"

namespace gradcube::dataplane {

// How an order travels in a segment header, for the neighbours to compare with their own.
struct CollectiveSignature {
  std::uint8_t type_and_operation = 0;
  std::uint32_t count = 0;
  friend bool operator==(const CollectiveSignature&, const CollectiveSignature&) = default;
};
CollectiveSignature signature(const CollectiveRequest& request);

// A neighbour's contribution that does not fit this server's order.
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

class PlanExecutor {
 public:
  static constexpr std::uint64_t kMaxInFlight = Session::kMaxInFlight;

  PlanExecutor(const control::Plan& plan, bcube::ServerId server, unsigned thread, EngineJob& job,
               Session& session, const aggregation::Kernels& kernels, std::uint32_t segment_bytes,
               const FlowSettings& flow_settings);

  unsigned thread() const { return schedule_.thread(); }
  const ThreadSchedule& schedule() const { return schedule_; }
  std::deque<Flow>& flows() { return flows_; }

  // The flow of `stage` with the neighbour that has `digit` at `level`.
  Flow& flow(protocol::Stage stage, unsigned level, unsigned digit);

  // Collectives in flight: from the oldest unfinished to before the next to be taken from the
  // session.
  std::uint64_t oldest() const { return oldest_; }
  std::uint64_t next() const { return next_; }
  bool active() const { return oldest_ != next_; }

  // Begins what the session has published since. True if there was something.
  bool begin_published();

  // Receiving ---------------------------------------------------------------

  // Whether a result for this sequence can be placed: its collective is in flight, its size and
  // kind are right. False and no disagreement: it is not ours to take now (dropped,
  // unacknowledged).
  bool result_fits(const Flow& flow, std::uint64_t sequence, const Contribution& result);
  // Writes the result into the trainer's buffer.
  void write_result(const Flow& flow, std::uint64_t sequence, const Contribution& result);

  // Holds a contribution and reduces what is now complete. Takes the packet.
  void contribute(const Flow& flow, std::uint64_t sequence, const Contribution& contribution);

  // How far the stream that this flow receives has been consumed: what credit is counted from.
  std::uint64_t consumed(const Flow& flow) const {
    return flow.stage == protocol::Stage::aggregation ? reduce_windows_[flow.step].base()
                                                      : flow.receive.cumulative();
  }

  const std::optional<Disagreement>& disagreement() const { return disagreement_; }
  // An overflow since the last reset. Its segment stays unreduced, so the collective cannot complete
  // at any server before the control thread fails it.
  const std::optional<Overflow>& overflow() const { return overflow_; }

  // Sending -----------------------------------------------------------------

  // Whether the next new segment of the flow exists already.
  bool next_is_ready(Flow& flow);
  // About how many segments wait for credit; at most 255.
  std::uint8_t backlog(Flow& flow);
  // A segment that was ready once, by its sequence.
  OutgoingSegment outgoing(const Flow& flow, std::uint64_t sequence) const;

  // Ends ----------------------------------------------------------------------

  // Finishes collectives whose results are all here and whose segments are all acknowledged, in
  // order; reports to the session. True if there was one.
  bool finish_completed();

  // Forgets everything in flight; the next collective is `last_failed` + 1, in fresh streams.
  void reset(std::uint64_t last_failed);

 private:
  struct InFlight {
    CollectiveRequest request;
    CollectiveLayout layout;
    CollectiveSignature signature;
  };

  const InFlight& in_flight(std::uint64_t collective) const {
    return in_flight_[collective % kMaxInFlight];
  }
  const InFlight* holder(unsigned w, std::uint64_t sequence) const;
  bool ready(const Flow& flow, const InFlight& collective, std::uint32_t position) const;
  bool result_is_here(const InFlight& collective, unsigned w, std::uint32_t position) const;
  bool own_is_ready(const InFlight& collective, unsigned w, std::uint32_t position) const;
  // Notes a disagreement as soon as one contribution shows it: those that would complete the
  // segment may be long in coming.
  void compare(unsigned w, std::uint64_t sequence, unsigned r);
  void reduce_if_complete(unsigned w, std::uint64_t sequence);
  bool contributions_agree(const InFlight& collective, unsigned w, std::uint64_t sequence,
                           std::uint32_t bytes);
  // False when the sum overflowed: overflow_ then says where.
  bool reduce(const InFlight& collective, unsigned w, std::uint64_t sequence, SegmentRange range);
  bool is_finished(const InFlight& collective);
  const Flow& result_flow(unsigned w, unsigned r) const;

  const control::Plan& plan_;
  ThreadSchedule schedule_;
  Session& session_;
  const aggregation::Kernels& kernels_;
  std::uint32_t segment_bytes_;
  FlowSettings flow_settings_;
  bcube::ServerId server_;

  std::deque<Flow> flows_;  // stage by stage, step by step, offsets 1..radix-1: see flow()
  std::array<unsigned, kMaxSteps + 1> first_flow_of_step_{};
  std::vector<ReduceWindow> reduce_windows_;  // one per step

  std::array<InFlight, kMaxInFlight> in_flight_{};
  std::uint64_t oldest_ = 1;
  std::uint64_t next_ = 1;
  std::array<std::uint64_t, kMaxSteps> end_of_streams_{};
  std::size_t blocking_flow_ = 0;  // where finish_completed() last found something missing
  std::vector<const void*> sources_;
  std::optional<Disagreement> disagreement_;
  std::optional<Overflow> overflow_;
};

}  // namespace gradcube::dataplane

#endif
