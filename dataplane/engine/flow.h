// One flow: the reliable exchange of one stage of one thread of one job with one neighbour, both
// directions.
//
// What it sends and receives are streams of segments (control/plan/thread_schedule.h), numbered by
// position: a segment keeps its sequence when it is sent again. Neither half stores a payload: the
// sender finds it in the trainer's buffer, and the receiver adds it where it arrives.
//
// Owned by its PlanExecutor; touched only by the engine's thread.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOW_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOW_H_

#include <cstdint>
#include <optional>

#include "bcube_forwarding/address.h"
#include "protocol/credit.h"
#include "protocol/receive_window.h"
#include "protocol/send_window.h"
#include "protocol/timer_wheel.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

class EngineJob;
class PlanExecutor;

struct Flow;

// What all flows of an engine have in common.
struct FlowSettings {
  protocol::RecoverySettings recovery;
  protocol::AcknowledgementSettings acknowledgement;
};

// A flow's place in its engine's timer wheel.
struct FlowTimer : protocol::TimerEntry {
  Flow* flow = nullptr;
};

// Which flow of its thread it is.
struct FlowKey {
  protocol::Stage stage{};
  std::uint8_t step = 0;    // the aggregation step, in the broadcast stage too
  std::uint8_t offset = 0;  // the neighbour's digit is ours plus this, modulo the radix
  std::uint8_t level = 0;
  bcube::ServerId peer = 0;
};

struct Flow : FlowKey {
  Flow(const FlowKey& key, EngineJob& its_job, PlanExecutor& its_executor,
       const FlowSettings& settings)
      : FlowKey(key),
        send(settings.recovery),
        receive(1, 0, settings.acknowledgement),
        job(&its_job),
        executor(&its_executor) {
    timer.flow = this;
  }

  protocol::SendWindow send;
  protocol::ReceiveWindow receive;
  std::optional<protocol::FrameTemplate> frame;  // made when the job starts: it holds the epoch

  EngineJob* job;
  PlanExecutor* executor;

  std::uint64_t sending = 1;  // the collective that holds send.next(), or the next one to begin
  protocol::CreditPool::Handle credit = 0;
  FlowTimer timer;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOW_H_
