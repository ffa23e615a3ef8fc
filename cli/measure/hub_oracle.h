// What the trainers of `gradcube perf hub --check` push, and the weights that must come of it, to
// the last bit.
//
// Every gradient is 1 or -1, so sums are exact in every type and order, and the mean of all
// trainers is the same for every plan. The weights follow from the scalar optimizer, step by step.
// Beyond kMostSigns trainers the others push zeros, whose sums with the rest bfloat16 still holds.
//
// One thread at a time for a key; several for different keys.
#ifndef GRADCUBE_CLI_MEASURE_HUB_ORACLE_H_
#define GRADCUBE_CLI_MEASURE_HUB_ORACLE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_key.h"

namespace gradcube::cli {

inline constexpr std::uint32_t kMostSigns = 256;

// Writes the key's first weights, the same for all trainers, and a trainer's gradients of a round,
// 1, 2, 3, ... Pure; any thread.
void fill_weights(const control::HubKey& key, std::uint32_t number, void* out);
void fill_gradients(const control::HubKey& key, std::uint32_t number, std::uint32_t rank,
                    std::uint64_t round, void* out);

class HubOracle {
 public:
  // Both must outlive it. settings: of each key, of one rule.
  HubOracle(std::span<const control::HubKey> keys,
            std::span<const aggregation::OptimizerSettings> settings, std::uint32_t trainers);

  // Takes the step of the key's next round.
  void step(std::uint32_t key);
  // How many of the weights found differ from those of the last step.
  std::uint64_t count_wrong(std::uint32_t key, const void* found) const;

 private:
  // Of a key: the weights in float32, and the optimizer's state.
  using Arrays = std::array<std::vector<float>, 3>;

  std::span<const control::HubKey> keys_;
  std::span<const aggregation::OptimizerSettings> settings_;
  std::uint32_t trainers_;
  std::vector<Arrays> arrays_;
  std::vector<std::uint64_t> rounds_;  // taken, by key
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_HUB_ORACLE_H_
