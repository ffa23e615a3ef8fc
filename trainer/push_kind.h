// What a trainer pushes of a key of its job's hub: the same on the shared ring (shared_layout.h)
// and in the daemon's exchange (dataplane/hub/hub_exchange.h).
#ifndef GRADCUBE_TRAINER_PUSH_KIND_H_
#define GRADCUBE_TRAINER_PUSH_KIND_H_

#include <cstdint>
#include <limits>

namespace gradcube::shared {

// Gradients are added and stepped with. Weights are put in the place of the hub's, and the
// optimizer's state begins from zero: all trainers push the same ones. What is restored is the
// weights and the state that a server owned when they were saved: of both each server takes what it
// owns from its first trainer, and nothing else in the buffers matters.
//
// A hub with an aggregator saves and loads by planes (control/checkpoint/hub_planes.h), one in a
// round: of what is saved all servers get the plane in the place of the key's weights, and what is
// in the buffers does not matter; of what is loaded the aggregator takes the plane from the one
// trainer that has it. Plane 0, the weights, comes last.
//
// A hub that accumulates has steps of two kinds of rounds. Their owner adds gradients that are
// accumulated to an array of its own, and what comes back is norms of it. What is applied is the
// optimizer's step with all that was accumulated, times a scale; the scale 0 drops it, and takes no
// step. Weights that are pushed, restored or loaded drop it, too.
enum class PushKind : std::uint8_t {
  gradients = 0,
  weights = 1,
  restored = 2,
  saved = 3,
  loaded = 4,
  accumulated = 5,
  applied = 6
};
inline constexpr unsigned kPushKinds = 7;

constexpr bool is_of_plane(PushKind kind) {
  return kind == PushKind::saved || kind == PushKind::loaded;
}

constexpr bool has_gradients(PushKind kind) {
  return kind == PushKind::gradients || kind == PushKind::accumulated;
}
constexpr bool has_rate(PushKind kind) {
  return kind == PushKind::gradients || kind == PushKind::applied;
}
// Of hubs that accumulate alone.
constexpr bool accumulates(PushKind kind) {
  return kind == PushKind::accumulated || kind == PushKind::applied;
}

// A scale that may be applied, as a float: rounding makes no 0 of another number.
constexpr bool is_scale(double scale) {
  return scale == 0 || (scale >= std::numeric_limits<float>::denorm_min() &&
                        scale <= std::numeric_limits<float>::max());
}

// A learning rate that may be pushed, but for kOwnRate. An aggregator is told it as a float.
constexpr bool is_learning_rate(double rate, bool has_aggregator) {
  return rate >= 0 && rate <= (has_aggregator ? std::numeric_limits<float>::max()
                                              : std::numeric_limits<double>::max());
}

}  // namespace gradcube::shared

#endif  // GRADCUBE_TRAINER_PUSH_KIND_H_
