// The weights that `gradcube perf hub --check` expects, against a second computation in float64 of
// settings whose every step is exact.
#include "cli/measure/hub_oracle.h"

#include <array>
#include <gtest/gtest.h>
#include <vector>

#include "aggregation/element.h"

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using control::HubKey;

constexpr std::uint64_t kElements = 5000;  // more than a block
constexpr double kLearningRate = 0.125;

// Of two keys.
const std::array<aggregation::OptimizerSettings, 2>& of_keys() {
  static const auto all = [] {
    aggregation::OptimizerSettings settings;
    settings.learning_rate = kLearningRate;
    return std::array{settings, settings};
  }();
  return all;
}

std::vector<float> widened(const HubKey& key, const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < key.elements; ++i) {
    if (key.type == DataType::float32) {
      values.push_back(reinterpret_cast<const float*>(bytes.data())[i]);
    } else {
      const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(bytes.data())[i];
      values.push_back(key.type == DataType::float16 ? aggregation::float16_to_float32(bits)
                                                     : aggregation::bfloat16_to_float32(bits));
    }
  }
  return values;
}

std::vector<float> gradients(const HubKey& key, std::uint32_t rank, std::uint64_t round) {
  std::vector<std::uint8_t> bytes(key.bytes());
  fill_gradients(key, 0, rank, round, bytes.data());
  return widened(key, bytes);
}

// The weights after some rounds, in the key's own type.
std::vector<std::uint8_t> trained(const HubKey& key, std::uint32_t trainers, unsigned rounds) {
  std::vector<std::uint8_t> bytes(key.bytes());
  fill_weights(key, 0, bytes.data());
  std::vector<float> weights = widened(key, bytes);
  for (unsigned round = 1; round <= rounds; ++round) {
    std::vector<double> sums(key.elements);
    for (std::uint32_t rank = 0; rank < trainers; ++rank) {
      const std::vector<float> its = gradients(key, rank, round);
      for (std::uint64_t i = 0; i < key.elements; ++i) sums[i] += its[i];
    }
    for (std::uint64_t i = 0; i < key.elements; ++i) {
      weights[i] = static_cast<float>(weights[i] - kLearningRate * sums[i] / trainers);
    }
  }
  for (std::uint64_t i = 0; i < key.elements; ++i) {
    if (key.type == DataType::float32) {
      reinterpret_cast<float*>(bytes.data())[i] = weights[i];
    } else {
      reinterpret_cast<std::uint16_t*>(bytes.data())[i] =
          key.type == DataType::float16 ? aggregation::float32_to_float16(weights[i])
                                        : aggregation::float32_to_bfloat16(weights[i]);
    }
  }
  return bytes;
}

// Means of powers of two of trainers are exact, and so are steps with such a rate.
TEST(HubOracle, HasTheWeightsThatStepsWithTheMeanYield) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    for (const std::uint32_t trainers : {1u, 2u, 64u, 128u}) {
      const std::vector<HubKey> keys = {{"key", kElements, type}};
      HubOracle oracle(keys, of_keys(), trainers);
      for (unsigned round = 0; round < 3; ++round) oracle.step(0);
      EXPECT_EQ(oracle.count_wrong(0, trained(keys[0], trainers, 3).data()), 0u) << trainers;
    }
  }
}

TEST(HubOracle, DividesByTrainersWhoseGradientsAreZeros) {
  const std::vector<HubKey> keys = {{"key", kElements, DataType::float32}};
  constexpr std::uint32_t kTrainers = 512;
  HubOracle oracle(keys, of_keys(), kTrainers);
  oracle.step(0);
  EXPECT_EQ(oracle.count_wrong(0, trained(keys[0], kTrainers, 1).data()), 0u);
}

TEST(HubOracle, CountsEveryWeightThatDiffers) {
  const std::vector<HubKey> keys = {{"key", kElements, DataType::bfloat16}};
  HubOracle oracle(keys, of_keys(), 4);
  oracle.step(0);
  std::vector<std::uint8_t> weights = trained(keys[0], 4, 1);
  for (const std::size_t at : {std::size_t{0}, std::size_t{4096}, kElements - 1}) {
    weights[2 * at] ^= 1;
  }
  EXPECT_EQ(oracle.count_wrong(0, weights.data()), 3u);
}

TEST(HubOracle, ExpectsOtherWeightsInEachRoundAndKey) {
  const std::vector<HubKey> keys = {{"a", kElements, DataType::float32},
                                    {"b", kElements, DataType::float32}};
  HubOracle oracle(keys, of_keys(), 4);
  oracle.step(0);
  oracle.step(1);
  EXPECT_GT(oracle.count_wrong(0, trained(keys[0], 4, 2).data()), kElements / 4);
  EXPECT_GT(oracle.count_wrong(1, trained(keys[1], 4, 1).data()), kElements / 4);
}

TEST(HubOracle, LetsNoMoreTrainersPushThanSumsOf16BitsHold) {
  const HubKey key{"key", 100, DataType::bfloat16};
  EXPECT_EQ(gradients(key, kMostSigns, 1), std::vector<float>(100, 0.0F));
  EXPECT_NE(gradients(key, kMostSigns - 1, 1), std::vector<float>(100, 0.0F));
}

}  // namespace
}  // namespace gradcube::cli
