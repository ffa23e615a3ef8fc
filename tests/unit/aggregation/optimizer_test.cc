// Every optimizer of every instruction set against the oracle.
#include "aggregation/optimizer.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/aggregation/arrays.h"
#include "tests/unit/aggregation/optimizer_oracle.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

constexpr DataType kGradients[] = {DataType::float32, DataType::float16, DataType::bfloat16};

// With and without what a kernel's form leaves out.
std::vector<OptimizerSettings> all_settings() {
  std::vector<OptimizerSettings> all;
  for (std::size_t rule = 0; rule < kOptimizerRules; ++rule) {
    for (const double decay : {0.0, 0.01}) {
      for (const double clip : {std::numeric_limits<double>::infinity(), 0.5}) {
        OptimizerSettings settings;
        settings.rule = static_cast<OptimizerRule>(rule);
        settings.momentum = 0.9;
        settings.dampening = settings.rule == OptimizerRule::momentum ? 0.125 : 0;
        settings.weight_decay = decay;
        settings.clip = clip;
        all.push_back(settings);
      }
    }
  }
  return all;
}

float widened(DataType type, Bits element) {
  if (type == DataType::float32) return std::bit_cast<float>(static_cast<std::uint32_t>(element));
  const auto half = static_cast<std::uint16_t>(element);
  return type == DataType::float16 ? float16_to_float32(half) : bfloat16_to_float32(half);
}

Bits bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// The same bits, or any two NaNs.
bool same(float a, float b) { return bits_of(a) == bits_of(b) || (a != a && b != b); }

// The arrays of a piece between guards, filled with random elements.
struct Piece {
  Piece(DataType gradient_type, std::size_t source_count, std::size_t count,
        std::size_t misalignment, std::mt19937_64& random)
      : type(gradient_type) {
    for (int array = 0; array < 3; ++array) {
      std::vector<Bits> elements;
      for (std::size_t i = 0; i < count; ++i) {
        const Bits element = random_element(DataType::float32, random);
        // Adam's v is never negative.
        elements.push_back(array == 2 ? element & 0x7fffffff : element);
      }
      old.push_back(elements);
      state.emplace_back(DataType::float32, elements, misalignment);
    }
    for (std::size_t s = 0; s < source_count; ++s) {
      std::vector<Bits> elements;
      for (std::size_t i = 0; i < count; ++i) elements.push_back(random_element(type, random));
      source_bits.push_back(elements);
      sources.emplace_back(type, elements, misalignment);
    }
    const std::vector<Bits> zeros(count);
    rounded.emplace_back(type, zeros, misalignment);
  }

  OptimizerArrays arrays() { return {as_floats(0), as_floats(1), as_floats(2), rounded[0].data()}; }
  float* as_floats(std::size_t array) { return reinterpret_cast<float*>(state[array].data()); }
  std::vector<const void*> source_addresses() {
    std::vector<const void*> addresses;
    for (GuardedArray& source : sources) addresses.push_back(source.data());
    return addresses;
  }
  float result(std::size_t array, std::size_t i) {
    return widened(DataType::float32, element_at(DataType::float32, state[array].data(), i));
  }
  bool guards_are_intact() const {
    const auto intact = [](const GuardedArray& array) { return array.guards_are_intact(); };
    return std::all_of(state.begin(), state.end(), intact) &&
           std::all_of(sources.begin(), sources.end(), intact) && intact(rounded[0]);
  }

  DataType type;
  std::vector<std::vector<Bits>> old;
  std::vector<std::vector<Bits>> source_bits;
  std::vector<GuardedArray> state;
  std::vector<GuardedArray> sources;
  std::vector<GuardedArray> rounded;
};

class Optimizer : public ::testing::Test {
 protected:
  // `piece` before and after one call.
  void expect_as_oracle(const Kernels& kernels, const OptimizerSettings& settings,
                        std::uint32_t divisor, Piece& piece) {
    const OptimizerForm form = optimizer_form(settings, divisor);
    const OptimizerStep step = optimizer_step(settings, 0.01, 3, divisor);
    const std::size_t count = piece.old[0].size();
    const std::vector<const void*> sources = piece.source_addresses();
    kernels.optimizers.optimize(piece.type, form)(piece.arrays(), sources.data(), sources.size(),
                                                  count, step);
    ASSERT_TRUE(piece.guards_are_intact());
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<float> gradients;
      for (const auto& source : piece.source_bits)
        gradients.push_back(widened(piece.type, source[i]));
      const OptimizedElement old = {widened(DataType::float32, piece.old[0][i]),
                                    widened(DataType::float32, piece.old[1][i]),
                                    widened(DataType::float32, piece.old[2][i])};
      const OptimizedElement expected = oracle_step(form, step, old, gradients);
      const bool adaptive = optimizer_states(form.rule) == 2;
      ASSERT_TRUE(same(piece.result(0, i), expected.weight) &&
                  same(piece.result(1, i), expected.first) &&
                  same(piece.result(2, i), adaptive ? expected.second : old.second))
          << instruction_set_name(kernels.instruction_set) << " " << data_type_name(piece.type)
          << " " << optimizer_rule_name(form.rule) << " form " << form.preparation() << ", element "
          << i << " of " << count << ": " << piece.result(0, i) << " is not " << expected.weight;
      if (piece.type != DataType::float32) expect_rounded(piece, i, expected.weight);
    }
  }

  static void expect_rounded(Piece& piece, std::size_t i, float weight) {
    const auto actual =
        static_cast<std::uint16_t>(element_at(piece.type, piece.rounded[0].data(), i));
    if (weight != weight) {
      EXPECT_TRUE(is_quiet_nan(piece.type, actual));
    } else {
      EXPECT_EQ(actual, encode_small_float(piece.type, static_cast<double>(weight)));
    }
  }

  std::uint64_t seed_ = test_seed();
  std::mt19937_64 random_{seed_};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "GRADCUBE_TEST_SEED=" + std::to_string(seed_)};
};

TEST_F(Optimizer, OfEveryKindReturnsTheBitsOfTheOracle) {
  for (const Kernels* kernels : available_kernels()) {
    for (const DataType type : kGradients) {
      for (const OptimizerSettings& settings : all_settings()) {
        for (const std::uint32_t divisor : {1, 9}) {
          Piece piece(type, 3, 3000, 0, random_);
          expect_as_oracle(*kernels, settings, divisor, piece);
        }
      }
    }
  }
}

TEST_F(Optimizer, TakesAnyLengthAlignmentAndNumberOfSources) {
  for (const Kernels* kernels : available_kernels()) {
    for (const DataType type : kGradients) {
      for (const OptimizerSettings& settings : all_settings()) {
        for (const std::size_t count : {0, 1, 7, 15, 16, 17, 63, 64, 65, 130}) {
          Piece piece(type, 1 + random_() % 9, count, random_() % 64, random_);
          expect_as_oracle(*kernels, settings, 1 + random_() % 2, piece);
        }
      }
    }
  }
}

TEST_F(Optimizer, MayWriteRoundedWeightsOverASource) {
  for (const Kernels* kernels : available_kernels()) {
    for (const DataType type : {DataType::float16, DataType::bfloat16}) {
      for (std::size_t victim = 0; victim < 3; ++victim) {
        OptimizerSettings settings;
        settings.rule = OptimizerRule::adam;
        const OptimizerForm form = optimizer_form(settings, 1);
        const OptimizerStep step = optimizer_step(settings, 0.01, 1, 1);
        const std::uint64_t seed = random_();
        std::mt19937_64 one(seed);
        std::mt19937_64 other(seed);
        Piece apart(type, 3, 101, 0, one);
        Piece within(type, 3, 101, 0, other);
        OptimizerArrays arrays = within.arrays();
        arrays.rounded = within.sources[victim].data();
        kernels->optimizers.optimize(type, form)(apart.arrays(), apart.source_addresses().data(), 3,
                                                 101, step);
        kernels->optimizers.optimize(type, form)(arrays, within.source_addresses().data(), 3, 101,
                                                 step);
        for (std::size_t i = 0; i < 101; ++i) {
          ASSERT_TRUE(same(within.result(0, i), apart.result(0, i)));
          const auto rounded = element_at(type, apart.rounded[0].data(), i);
          if (is_nan(type, rounded)) continue;
          ASSERT_EQ(element_at(type, within.sources[victim].data(), i), rounded);
        }
      }
    }
  }
}

TEST_F(Optimizer, NeverTouchesAStateThatItsRuleLacks) {
  for (const Kernels* kernels : available_kernels()) {
    for (const OptimizerRule rule : {OptimizerRule::sgd, OptimizerRule::nesterov}) {
      OptimizerSettings settings;
      settings.rule = rule;
      Piece piece(DataType::float32, 2, 70, 4, random_);
      OptimizerArrays arrays = piece.arrays();
      if (rule == OptimizerRule::sgd) arrays.first = nullptr;
      arrays.second = nullptr;
      arrays.rounded = nullptr;
      const OptimizeFunction optimize =
          kernels->optimizers.optimize(DataType::float32, optimizer_form(settings, 1));
      optimize(arrays, piece.source_addresses().data(), 2, 70, optimizer_step(settings, 0.1, 1, 1));
      EXPECT_TRUE(piece.guards_are_intact());
    }
  }
}

TEST_F(Optimizer, OfNesterovGoesAsFarAsPyTorchSays) {
  OptimizerSettings settings;
  settings.rule = OptimizerRule::nesterov;
  settings.momentum = 0.5;
  for (const Kernels* kernels : available_kernels()) {
    float weight = 1;
    float first = 0;
    const float gradients[] = {2, 4};
    const void* sources[] = {&gradients[0], &gradients[1]};
    const OptimizeFunction optimize =
        kernels->optimizers.optimize(DataType::float32, optimizer_form(settings, 2));
    for (std::uint64_t t = 1; t <= 2; ++t) {
      const OptimizerStep step = optimizer_step(settings, t == 1 ? 0.25 : 0.5, t, 2);
      optimize({&weight, &first, nullptr, nullptr}, sources, 2, 1, step);
      // g = 3; m = 3, then 4.5; the steps 0.25 * (3 + 1.5) and 0.5 * (3 + 2.25).
      EXPECT_EQ(first, t == 1 ? 3.0F : 4.5F);
      EXPECT_EQ(weight, t == 1 ? -0.125F : -2.75F);
    }
  }
}

TEST_F(Optimizer, ClipsInfinitiesAndPassesNaNsOn) {
  OptimizerSettings settings;
  settings.clip = 2;
  const OptimizerForm form = optimizer_form(settings, 1);
  for (const Kernels* kernels : available_kernels()) {
    float weights[] = {1, 1, 1};
    const float gradients[] = {INFINITY, -INFINITY, NAN};
    const void* sources[] = {gradients};
    kernels->optimizers.optimize(DataType::float32, form)(
        {weights, nullptr, nullptr, nullptr}, sources, 1, 3, optimizer_step(settings, 0.5, 1, 1));
    EXPECT_EQ(weights[0], 0);
    EXPECT_EQ(weights[1], 2);
    EXPECT_TRUE(std::isnan(weights[2]));
  }
}

TEST_F(Optimizer, ExistsForFloatsThatTrainersUseAlone) {
  for (const Kernels* kernels : available_kernels()) {
    for (std::size_t t = 0; t < kTypeNumbers; ++t) {
      const auto type = static_cast<DataType>(t);
      for (const OptimizerSettings& settings : all_settings()) {
        EXPECT_EQ(kernels->optimizers.optimize(type, optimizer_form(settings, 1)) != nullptr,
                  has_optimizers(type));
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::aggregation::test
