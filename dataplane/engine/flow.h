// One flow: the reliable exchange of one stage of one thread of one job with one neighbour, both
// directions.
//
// What it sends and receives are streams of segments (thread_shape.h) numbered by position: a
// segment keeps its sequence when it is sent again, and neither half stores a payload: the sender
// finds it in the trainer's buffer, the receiver adds it where it arrives.
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

struct Flow {
  Flow(const FlowSettings& settings, EngineJob& its_job, PlanExecutor& its_executor,
       protocol::Stage its_stage, unsigned its_step, unsigned its_offset, unsigned its_level,
       bcube::ServerId its_peer)
      : send(settings.recovery),
        receive(1, 0, settings.acknowledgement),
        job(&its_job),
        executor(&its_executor),
        stage(its_stage),
        step(static_cast<std::uint8_t>(its_step)),
        offset(static_cast<std::uint8_t>(its_offset)),
        level(static_cast<std::uint8_t>(its_level)),
        peer(its_peer) {
    timer.flow = this;
  }

  protocol::SendWindow send;
  protocol::ReceiveWindow receive;
  std::optional<protocol::FrameTemplate> frame;  // made when the job starts: it holds the epoch

  EngineJob* job;
  PlanExecutor* executor;
  protocol::Stage stage;
  std::uint8_t step;
  std::uint8_t offset;  // the neighbour's digit is ours plus this, modulo the radix
  std::uint8_t level;
  bcube::ServerId peer;

  std::uint64_t sending = 1;  // the collective that holds send.next(), or the next one to begin
  protocol::CreditPool::Handle credit = 0;
  FlowTimer timer;
};

}  // namespace gradcube::dataplane

#endif
