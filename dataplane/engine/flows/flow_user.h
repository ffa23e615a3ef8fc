// What an engine's flows carry segments for: its side of the bargain.
//
// The engine owns delivery: windows, acknowledgements, resends, credit, order of service. The user
// owns meaning: which bytes a sequence stands for, whether they exist yet, and what becomes of what
// arrives. Each flow has one user for its life. A sequence is a place in the user's stream, so it
// names its bytes for ever: what is sent again is the same bytes, and what came before is known by
// its number (docs/decisions.md, "Engines and pollers").
//
// The engine calls these on its own thread. They neither block nor allocate. The engine asks
// next_segment() only of a flow that is awake, so a user wakes a flow (port_queue.h) when
// next_segment() or consumed() may give another answer than before.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_USER_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_USER_H_

#include <concepts>
#include <cstdint>
#include <optional>

#include "dataplane/engine/flows/contribution.h"
#include "dataplane/engine/flows/engine_counters.h"
#include "dataplane/engine/flows/flow.h"

namespace gradcube::dataplane {

// A segment to send, in the trainer's buffer.
struct OutgoingSegment {
  CollectiveSignature signature;
  const std::uint8_t* payload;
  std::uint32_t bytes;
};

template <typename User>
concept FlowUser = requires(User& user, Flow& flow, std::uint64_t sequence,
                            const Contribution& segment,
                            const typename User::Acceptance& accepted) {
  // Whether a segment that has not arrived before may be acknowledged, and what take() has to know
  // then. accepted.refused: why not; the segment is dropped as if it had never come.
  { user.accept(flow, sequence, segment) } -> std::same_as<typename User::Acceptance>;
  { accepted.refused } -> std::convertible_to<std::optional<DropReason>>;
  // Takes an accepted segment. True: the user keeps the packet and frees it.
  { user.take(flow, sequence, segment, accepted) } -> std::same_as<bool>;
  // All sequences below this one are used: their packets are free, and nothing reads them again.
  { user.consumed(flow) } -> std::same_as<std::uint64_t>;
  // Whether the sender waits for the acknowledgement of `sequence`, the first one that is consumed
  // since the last call, or of what was consumed after it, and no segment of this flow will carry
  // it.
  { user.sender_waits(flow, sequence) } -> std::same_as<bool>;
  // The segment with the sequence flow.send.next(), if its bytes exist.
  { user.next_segment(flow) } -> std::same_as<std::optional<OutgoingSegment>>;
  // A segment that was sent before and is not acknowledged.
  { user.sent_segment(flow, sequence) } -> std::same_as<OutgoingSegment>;
  // The number of the collective that has the sequence flow.receive.limit(), or would have it.
  { user.granting(flow) } -> std::same_as<std::uint64_t>;
  // About how many segments wait to be sent, at most 255; ready_backlog() where the next one
  // exists.
  { user.backlog(flow) } -> std::same_as<std::uint8_t>;
  { user.ready_backlog(flow) } -> std::same_as<std::uint8_t>;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_USER_H_
