// The optimizer of a hub, and of those keys that have settings of their own, as people write it:
//
//     adamw:lr=1e-3,weight-decay=0.1;*bias:weight-decay=0;*norm*:weight-decay=0
//
// Behind each semicolon stands which keys, and which of the optimizer's settings they have in place
// of the hub's. A `*` at the beginning, at the end, or at both stands for any characters; without
// one it is a key's whole name. What stands later counts where a key is named twice. All keys have
// the hub's rule, and so as many arrays of state.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_KEY_OPTIMIZERS_H_
#define GRADCUBE_CONTROL_CHECKPOINT_KEY_OPTIMIZERS_H_

#include <span>
#include <string_view>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_key.h"

namespace gradcube::control {

// As many as there are names with a `*`, each of which is compared with every key.
inline constexpr std::size_t kMostKeyPatterns = 64;

struct KeyOptimizers {
  aggregation::OptimizerSettings of_hub;
  std::vector<aggregation::OptimizerSettings> of_keys;  // by the key's place in what was given
};

// Throws a UsageError that begins with `where`, as parse_optimizer() does, and for names that no
// key has: a wrong name changes nothing in silence.
KeyOptimizers parse_key_optimizers(std::string_view text, std::span<const HubKey> keys,
                                   std::string_view where);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_KEY_OPTIMIZERS_H_
