// One executor of a hub on an engine's flows: what HubExchange (dataplane/hub/hub_exchange.h) is
// told and asked, in packets. PHub, section 3.2.
//
// It is a FlowUser (flow_user.h). A flow goes to one peer of one step, in one stage. Its stream is
// made as it is sent: each segment says which chunk it is of and where it belongs in it, and what a
// sequence stands for is remembered until it is acknowledged. What arrives is landed at once: no
// packet is held, and no key waits for another.
//
// What a segment's header says of it: docs/protocol.md, "Chunks of a hub". What comes before its
// round can come is refused, and sent again.
//
// A segment that was used, and whose acknowledgement is lost, may be sent again when its bytes have
// changed: its receiver knows its sequence, and reads nothing.
//
// Trainers' pushes come through the server's HubBoard, and ends go there.
//
// Owned by its EngineHub; touched only by the engine's thread. Allocates at construction.
#ifndef GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_EXECUTOR_H_
#define GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_EXECUTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/flows/flow_user.h"
#include "dataplane/engine/hub/server_hub.h"

namespace gradcube::dataplane {

class EngineHub;

class HubExecutor {
 public:
  // place: that of the executor among those of the server's hub, which must outlive it.
  HubExecutor(EngineHub& hub, EngineJob& job, ServerHub& of, std::size_t place,
              const FlowSettings& flows, unsigned window);
  HubExecutor(const HubExecutor&) = delete;
  HubExecutor& operator=(const HubExecutor&) = delete;

  EngineHub& hub() const { return hub_; }
  std::uint32_t hub_number() const { return hub_number_; }
  unsigned number() const { return number_; }
  std::deque<Flow>& flows() { return flows_; }

  // When a port serves the flow (control/plan/service_order.h).
  unsigned service_place(const Flow& flow) const;

  // Takes what the trainers have pushed; tells which keys have ended. True if there was something.
  bool begin_pushed();
  bool tell_ended();
  // Whether a round that was pushed has not ended, or a peer may lack something of one.
  bool active() const;
  // HubExchange::disagreement(), until it is told.
  std::optional<std::uint32_t> disagreement() const {
    return told_ ? std::nullopt : exchange_.disagreement();
  }
  void set_told() { told_ = true; }

  // The server that a round of the key waits for first, if one does; and in which step.
  struct Missing {
    bcube::ServerId server = 0;
    unsigned step = 0;
    protocol::Stage stage{};
  };
  std::optional<Missing> missing(std::uint32_t key);

  // FlowUser ------------------------------------------------------------------

  struct Acceptance {
    std::optional<DropReason> refused;
  };
  // Takes it at once: it is asked only for what has room and has not arrived.
  Acceptance accept(Flow& flow, std::uint64_t sequence, const Contribution& segment);
  bool take(Flow& flow, std::uint64_t sequence, const Contribution& segment,
            const Acceptance& accepted);
  std::uint64_t consumed(const Flow& flow) const { return flow.receive.cumulative(); }
  // A round's end shows that all of it was used.
  bool sender_waits(const Flow&, std::uint64_t) const { return false; }
  std::optional<OutgoingSegment> next_segment(Flow& flow);
  OutgoingSegment sent_segment(const Flow& flow, std::uint64_t sequence) const;
  std::uint64_t granting(const Flow&) const { return 0; }
  std::uint8_t backlog(const Flow& flow) const;
  std::uint8_t ready_backlog(const Flow& flow) const { return backlog(flow); }

 private:
  // By sequence: what is not acknowledged, and the next one. A power of two.
  static constexpr std::size_t kEntries = 2 * std::size_t{protocol::SendWindow::kWindow};
  struct Stream {
    std::array<HubLabel, kEntries> labels{};
    std::uint64_t chosen = 0;  // all sequences below stand for something
  };

  static HubStream stream_of(const Flow& flow) {
    return {static_cast<control::Stage>(flow.stage), flow.step, flow.offset};
  }
  std::size_t number_of(const Flow& flow) const {
    const std::size_t stage = flow.stage == protocol::Stage::aggregation ? 0 : flows_.size() / 2;
    return stage + first_flow_[flow.step] +
           exchange_.schedule().step(flow.step).number_of_peer(flow.offset);
  }
  OutgoingSegment outgoing(const Flow& flow, const HubLabel& label) const;
  void wake_senders();

  EngineHub& hub_;
  std::uint32_t hub_number_;
  std::size_t place_;
  unsigned number_;  // by which its frames are steered
  const control::Plan& plan_;
  HubExchange& exchange_;
  HubBoard& board_;
  std::array<std::size_t, control::kMaxSteps> first_flow_{};  // of a step, in a stage
  std::deque<Flow> flows_;       // by number_of(), as the exchange numbers its streams
  std::vector<Stream> streams_;  // by number_of()
  bool told_ = false;
};

static_assert(FlowUser<HubExecutor>);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_EXECUTOR_H_
