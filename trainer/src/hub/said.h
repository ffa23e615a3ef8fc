// What trainers of a job tell each other as they go through a call together (agreement.h).
#ifndef GRADCUBE_TRAINER_SRC_HUB_SAID_H_
#define GRADCUBE_TRAINER_SRC_HUB_SAID_H_

#include <cstdint>

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// Of all calls that trainers go through together.
enum class Step : std::uint64_t {
  compare_hubs = 1,
  make_hub,
  save_planes,
  finish_checkpoint,
  prepare_checkpoint,
  publish_checkpoint,
  offer_checkpoints,
  look_for_checkpoint,
  take_checkpoint,
};

// What a rank tells all others: how a call goes on there, and what it is about.
struct Said {
  std::int64_t code = GRADCUBE_OK;
  std::uint64_t value = 0;       // a digest, or a step
  std::uint64_t generation = 0;  // of checkpoints; of a hub: the job's epoch in which it was made
  std::uint64_t pushes = 0;  // a digest of those of each key before it saves; 0: it saves nothing
  std::uint64_t has = 0;     // what the rank has
  Step step{};
  std::uint64_t round = 0;  // of a step that a call repeats
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_SAID_H_
