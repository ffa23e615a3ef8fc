// What all servers and engines of a hub agree on: its keys, how they are cut into chunks, and who
// works on which chunk. Every server makes the same from the same keys.
//
// An EXECUTOR is one lcore's share of one path (binding.h): it has chunks for their life, exchanges
// them by the path's thread of the plan, and shares nothing with the others. Executors have the
// numbers by which frames are steered: number modulo lcores is the lcore's place.
//
// Weights have a place in the memory of the whole model: keys one behind the other, each at a
// multiple of 64 bytes, in the type of their gradients.
//
// Immutable; any thread may read it.
#ifndef GRADCUBE_CONTROL_HUB_HUB_MODEL_H_
#define GRADCUBE_CONTROL_HUB_HUB_MODEL_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_key.h"
#include "control/checkpoint/key_optimizers.h"
#include "control/hub/binding.h"
#include "control/hub/chunks.h"

namespace gradcube::control::hub {

struct HubExecution {
  unsigned number = 0;
  unsigned thread = 0;                // of the plan
  std::vector<std::uint32_t> chunks;  // ascending
};

class HubModel {
 public:
  // keys: as ordered_keys() returns them; optimizers: of these. lcores: of each server.
  // chunk_bytes: 0 for default_chunk_bytes(). Throws a UsageError that begins with `where` as
  // cut_into_chunks() does.
  HubModel(std::vector<HubKey> keys, KeyOptimizers optimizers, const Plan& plan, unsigned lcores,
           std::uint64_t chunk_bytes, std::string_view where);

  const std::vector<HubKey>& keys() const { return keys_; }
  // Of keys that have none of their own; their rule is that of all.
  const aggregation::OptimizerSettings& settings() const { return optimizers_.of_hub; }
  const aggregation::OptimizerSettings& settings_of(std::uint32_t key) const {
    return optimizers_.of_keys[key];
  }
  aggregation::OptimizerRule rule() const { return settings().rule; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  const std::vector<HubExecution>& executions() const { return executions_; }

  // In the memory of the model.
  std::uint64_t begin_of_key(std::uint32_t key) const { return begins_[key]; }
  std::uint64_t begin_of(const Chunk& chunk) const {
    return begins_[chunk.key] +
           chunk.first_element * aggregation::element_bytes(keys_[chunk.key].type);
  }
  std::uint64_t bytes() const { return begins_.back(); }

 private:
  std::vector<HubKey> keys_;
  KeyOptimizers optimizers_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint64_t> begins_;  // of each key, and the end
  std::vector<HubExecution> executions_;
};

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_HUB_MODEL_H_
