#include "cli/measure/hub_oracle.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "aggregation/element.h"
#include "aggregation/optimizer.h"
#include "cli/measure/oracle.h"
#include "cli/measure/perf_inputs.h"

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using control::HubKey;

constexpr std::size_t kBlock = 4096;  // elements
constexpr unsigned kWordBits = 64;

// Bit i: whether trainer 64 * word + i pushes a -1 for this element.
std::uint64_t signs(std::uint32_t key, std::uint64_t round, std::uint32_t word,
                    std::uint64_t element) {
  return mixed(element ^ mixed(std::uint64_t{key} << 32 ^ round << 3 ^ word));
}

// A multiple of 1/64 between -2 and 2, which every type has.
float first_weight(std::uint32_t key, std::uint64_t element) {
  const auto number = static_cast<std::int8_t>(mixed(element ^ mixed(~std::uint64_t{key})));
  return static_cast<float>(number) / 64;
}

std::uint16_t rounded(DataType type, float value) {
  return type == DataType::float16 ? aggregation::float32_to_float16(value)
                                   : aggregation::float32_to_bfloat16(value);
}

// Writes value(element) for all elements of the key, in its type.
template <typename Value>
void fill(const HubKey& key, void* out, const Value& value) {
  if (key.type == DataType::float32) {
    auto* const to = static_cast<float*>(out);
    for (std::uint64_t i = 0; i < key.elements; ++i) to[i] = value(i);
  } else {
    auto* const to = static_cast<std::uint16_t*>(out);
    for (std::uint64_t i = 0; i < key.elements; ++i) to[i] = rounded(key.type, value(i));
  }
}

}  // namespace

void fill_weights(const HubKey& key, std::uint32_t number, void* out) {
  fill(key, out, [number](std::uint64_t element) { return first_weight(number, element); });
}

void fill_gradients(const HubKey& key, std::uint32_t number, std::uint32_t rank,
                    std::uint64_t round, void* out) {
  if (rank >= kMostSigns) {
    std::memset(out, 0, key.bytes());
    return;
  }
  fill(key, out, [&](std::uint64_t element) {
    return (signs(number, round, rank / kWordBits, element) >> rank % kWordBits & 1) != 0 ? -1.0F
                                                                                          : 1.0F;
  });
}

HubOracle::HubOracle(std::span<const HubKey> keys,
                     std::span<const aggregation::OptimizerSettings> settings,
                     std::uint32_t trainers)
    : keys_(keys),
      settings_(settings),
      trainers_(trainers),
      arrays_(keys.size()),
      rounds_(keys.size()) {
  for (std::uint32_t k = 0; k < keys.size(); ++k) {
    arrays_[k][0].resize(keys[k].elements);
    for (std::uint64_t i = 0; i < keys[k].elements; ++i) arrays_[k][0][i] = first_weight(k, i);
    const std::size_t states = aggregation::optimizer_states(settings[k].rule);
    for (std::size_t s = 1; s <= states; ++s) arrays_[k][s].resize(keys[k].elements);
  }
}

void HubOracle::step(std::uint32_t key) {
  const aggregation::OptimizerSettings& settings = settings_[key];
  const aggregation::OptimizerForm form = aggregation::optimizer_form(settings, trainers_);
  const aggregation::OptimizeFunction optimize =
      aggregation::kernels_for(aggregation::InstructionSet::scalar)
          ->optimizers.optimize(DataType::float32, form);
  const std::uint64_t round = ++rounds_[key];
  const aggregation::OptimizerStep numbers =
      aggregation::optimizer_step(settings, settings.learning_rate, round, trainers_);
  Arrays& arrays = arrays_[key];
  std::array<float, kBlock> sums;
  const std::uint32_t pushing = std::min(trainers_, kMostSigns);
  for (std::uint64_t first = 0; first < keys_[key].elements; first += kBlock) {
    const std::uint64_t length = std::min<std::uint64_t>(kBlock, keys_[key].elements - first);
    for (std::uint64_t i = 0; i < length; ++i) {
      int sum = static_cast<int>(pushing);
      for (std::uint32_t rank = 0; rank < pushing; rank += kWordBits) {
        const std::uint32_t here = std::min(pushing - rank, kWordBits);
        const std::uint64_t all = ~std::uint64_t{0} >> (kWordBits - here);
        sum -= 2 * std::popcount(signs(key, round, rank / kWordBits, first + i) & all);
      }
      sums[i] = static_cast<float>(sum);
    }
    const void* const sources[] = {sums.data()};
    const auto at = [first](std::vector<float>& array) {
      return array.empty() ? nullptr : array.data() + first;
    };
    optimize({at(arrays[0]), at(arrays[1]), at(arrays[2]), nullptr}, sources, 1, length, numbers);
  }
}

std::uint64_t HubOracle::count_wrong(std::uint32_t key, const void* found) const {
  const HubKey& its = keys_[key];
  const std::vector<float>& weights = arrays_[key][0];
  if (its.type == DataType::float32) {
    return cli::count_wrong(its.type, weights.data(), found, weights.size());
  }
  std::array<std::uint16_t, kBlock> expected;
  std::uint64_t wrong = 0;
  for (std::size_t first = 0; first < weights.size(); first += kBlock) {
    const std::size_t length = std::min(kBlock, weights.size() - first);
    for (std::size_t i = 0; i < length; ++i) {
      expected[i] = rounded(its.type, weights[first + i]);
    }
    wrong += cli::count_wrong(its.type, expected.data(),
                              static_cast<const std::uint16_t*>(found) + first, length);
  }
  return wrong;
}

}  // namespace gradcube::cli
