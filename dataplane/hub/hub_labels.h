// What an exchange of a hub's chunks (hub_exchange.h) is told of a push, and what tells its
// segments apart. Plain values.
#ifndef GRADCUBE_DATAPLANE_HUB_HUB_LABELS_H_
#define GRADCUBE_DATAPLANE_HUB_HUB_LABELS_H_

#include <array>
#include <cstdint>

#include "control/plan/base/placement.h"
#include "control/plan/thread_schedule.h"
#include "dataplane/hub/hub_state.h"
#include "trainer/push_kind.h"

namespace gradcube::dataplane {

using shared::PushKind;

// What a server's trainers push of a key, all at once.
struct HubPush {
  PushKind kind = PushKind::gradients;
  std::uint8_t plane = 0;    // of what is saved or loaded
  double learning_rate = 0;  // of gradients, and of what is applied
  // Of weights: of their bytes, as the trainers say. Of what is applied: the bits of the scale, a
  // float.
  std::uint64_t digest = 0;
  // Of what is restored: that the optimizer has taken. Of what is loaded one more, in 32 bits, at
  // the trainer that has it; 0 at others.
  std::uint64_t steps = 0;
  // Of each trainer of the server: the key's values, `trainers` of them.
  std::array<std::uint8_t*, control::kMaxLocalTrainers> buffers{};
  // Of what is restored: the arrays of the whole key (hub_state.h).
  std::array<const float*, kHubArrays> arrays{};
};

// What tells servers which bytes a segment has.
struct HubLabel {
  std::uint32_t chunk = 0;
  std::uint32_t position = 0;  // in its stream, over all rounds of a ring
  std::uint8_t round = 0;      // of the chunk's; the low 8 bits
  PushKind kind{};
  std::uint8_t plane = 0;
  // Of a contribution, in 32 bits: by which learning rate and scale its trainers want to step,
  // which weights they push, or how many steps they restore. Of gradients for a root without
  // trainers, the rate itself, as a float; and of what is loaded the steps, as HubPush has them.
  std::uint32_t digest = 0;

  bool operator==(const HubLabel&) const = default;
};

// One of the streams that this server has: of a stage and a step, to or from the peer at an offset.
struct HubStream {
  control::Stage stage{};
  unsigned step = 0;
  unsigned offset = 0;
};

// What a contribution to a round that is applied carries, for a root without trainers.
struct HubNumbers {
  float learning_rate = 0;
  float scale = 0;

  bool operator==(const HubNumbers&) const = default;
};

struct HubSegment {
  HubLabel label;
  const std::uint8_t* payload = nullptr;
  std::uint32_t bytes = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_HUB_LABELS_H_
