// Checks what gradcube_merge_layers() is given, and asks control/merge/ for the messages.
//
// Any thread; owns nothing. Throws Failure (GRADCUBE_EINVAL).
#ifndef GRADCUBE_TRAINER_SRC_MERGE_LAYERS_H_
#define GRADCUBE_TRAINER_SRC_MERGE_LAYERS_H_

#include <cstddef>

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

inline constexpr std::size_t kMostLayers = 10'000;  // the policies take O(L^2) steps

// An all-reduce of M bytes takes alpha + beta * M seconds.
struct MessageCost {
  double alpha = 0;
  double beta = 0;
};

void merge_layers(int policy, const MessageCost& cost, const gradcube_layer* layers,
                  std::size_t count, std::size_t* message_of);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_MERGE_LAYERS_H_
