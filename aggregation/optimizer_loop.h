// The loops of all optimizers, written once for the vectors of any instruction set, as
// reduce_loop.h is and under the same rules: only the files kernels_<instruction set>.cc include
// this header, and the unnamed namespace is intended. optimizer.h says what the loops compute.
//
// Beside what reduce_loop.h asks of the `Lanes` of a floating-point type, those of float32 have
//
//     fused(a, b, c) -> Vector    a * b + c, rounded once
//     square_root(Vector)         correctly rounded
//
// and those of the 16-bit types have the same Vector and as many lanes.
#ifndef GRADCUBE_AGGREGATION_OPTIMIZER_LOOP_H_
#define GRADCUBE_AGGREGATION_OPTIMIZER_LOOP_H_

#include <cstddef>
#include <cstring>

#include "aggregation/optimizer.h"

namespace gradcube::aggregation {
namespace {

// The numbers of a step in all lanes, and what is done with them.
template <typename Wide, OptimizerRule kRule, bool kLimits, bool kDecays>
struct Update {
  using Vector = typename Wide::Vector;
  static constexpr std::size_t kStates = optimizer_states(kRule);
  static constexpr bool kAdaptive = kStates == 2;

  explicit Update(const OptimizerStep& step)
      : divisor(Wide::broadcast(step.divisor)),
        low(Wide::broadcast(-step.clip)),
        high(Wide::broadcast(step.clip)),
        weight_decay(Wide::broadcast(step.weight_decay)),
        keep(Wide::broadcast(step.keep)),
        momentum(Wide::broadcast(step.momentum)),
        first_decay(Wide::broadcast(step.first_decay)),
        first_weight(Wide::broadcast(step.first_weight)),
        second_decay(Wide::broadcast(step.second_decay)),
        second_weight(Wide::broadcast(step.second_weight)),
        minus_rate(Wide::broadcast(step.minus_rate)),
        second_correction(Wide::broadcast(step.second_correction)),
        epsilon(Wide::broadcast(step.epsilon)) {}

  Vector gradient(Vector sum, Vector weight) const {
    if constexpr (kLimits) {
      sum = Wide::min(Wide::max(Wide::divide(sum, divisor), low), high);
    }
    if constexpr (kDecays) sum = Wide::fused(weight, weight_decay, sum);
    return sum;
  }
  Vector new_first(Vector first, Vector gradient) const {
    return Wide::fused(gradient, first_weight, Wide::scale(first, first_decay));
  }
  Vector new_second(Vector second, Vector gradient) const {
    return Wide::fused(Wide::scale(gradient, second_weight), gradient,
                       Wide::scale(second, second_decay));
  }
  // With the new states.
  Vector new_weight(Vector weight, Vector gradient, Vector first, Vector second) const {
    if constexpr (kRule == OptimizerRule::sgd) return Wide::fused(gradient, minus_rate, weight);
    if constexpr (kRule == OptimizerRule::momentum) return Wide::fused(first, minus_rate, weight);
    if constexpr (kRule == OptimizerRule::nesterov) {
      return Wide::fused(Wide::fused(first, momentum, gradient), minus_rate, weight);
    }
    if constexpr (kRule == OptimizerRule::adamw) weight = Wide::scale(weight, keep);
    const Vector root = Wide::divide(Wide::square_root(second), second_correction);
    return Wide::sum(weight,
                     Wide::divide(Wide::scale(first, minus_rate), Wide::sum(root, epsilon)));
  }

  Vector divisor, low, high, weight_decay, keep, momentum, first_decay, first_weight, second_decay,
      second_weight, minus_rate, second_correction, epsilon;
};

// The arrays of a piece as bytes; a state that the rule lacks is never touched.
struct PieceArrays {
  std::byte* weights;
  std::byte* first;
  std::byte* second;
  std::byte* rounded;
};

// Steps on kVectors vectors from element `at` on, with the sums of their gradients.
template <typename Wide, typename Lanes, std::size_t kVectors, typename Update>
void update_vectors(const PieceArrays& arrays, std::size_t at,
                    const typename Wide::Vector (&sums)[kVectors], const Update& update) {
  using Vector = typename Wide::Vector;
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::size_t element = at + v * Wide::kLanes;
    const std::size_t offset = element * sizeof(float);
    const Vector weight = Wide::load(arrays.weights + offset);
    const Vector gradient = update.gradient(sums[v], weight);
    Vector first{};
    Vector second{};
    if constexpr (Update::kStates > 0) {
      first = update.new_first(Wide::load(arrays.first + offset), gradient);
      Wide::store(arrays.first + offset, first);
    }
    if constexpr (Update::kAdaptive) {
      second = update.new_second(Wide::load(arrays.second + offset), gradient);
      Wide::store(arrays.second + offset, second);
    }
    const Vector result = update.new_weight(weight, gradient, first, second);
    Wide::store(arrays.weights + offset, result);
    if constexpr (Lanes::kElementBytes != sizeof(float)) {
      Lanes::store(arrays.rounded + element * Lanes::kElementBytes, result);
    }
  }
}

// All sources are read before anything is written: `rounded` may be one of them.
template <typename Wide, typename Lanes, std::size_t kVectors, typename Update>
void optimize_block(const PieceArrays& arrays, const void* const* sources, std::size_t source_count,
                    std::size_t at, const Update& update) {
  constexpr std::size_t kVectorBytes = Lanes::kLanes * Lanes::kElementBytes;
  const std::size_t offset = at * Lanes::kElementBytes;
  typename Wide::Vector sums[kVectors];
  const std::byte* first = static_cast<const std::byte*>(sources[0]) + offset;
  for (std::size_t v = 0; v < kVectors; ++v) sums[v] = Lanes::load(first + v * kVectorBytes);
  for (std::size_t s = 1; s < source_count; ++s) {
    const std::byte* source = static_cast<const std::byte*>(sources[s]) + offset;
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[v] = Wide::sum(sums[v], Lanes::load(source + v * kVectorBytes));
    }
  }
  update_vectors<Wide, Lanes>(arrays, at, sums, update);
}

// The last `count` elements, less than a vector, through buffers: no access outside the arrays.
template <typename Wide, typename Lanes, typename Update>
void optimize_tail(const PieceArrays& arrays, const void* const* sources, std::size_t source_count,
                   std::size_t at, std::size_t count, const Update& update) {
  constexpr std::size_t kStateBytes = Wide::kLanes * sizeof(float);
  constexpr std::size_t kSourceBytes = Lanes::kLanes * Lanes::kElementBytes;
  alignas(64) std::byte parts[3][kStateBytes] = {};
  alignas(64) std::byte source[kSourceBytes] = {};
  std::byte* const whole[3] = {arrays.weights, arrays.first, arrays.second};
  const auto loaded = [&](std::size_t s) {
    const std::byte* from = static_cast<const std::byte*>(sources[s]) + at * Lanes::kElementBytes;
    std::memcpy(source, from, count * Lanes::kElementBytes);
    return Lanes::load(source);
  };
  typename Wide::Vector sum[1] = {loaded(0)};
  for (std::size_t s = 1; s < source_count; ++s) sum[0] = Wide::sum(sum[0], loaded(s));
  for (std::size_t a = 0; a <= Update::kStates; ++a) {
    std::memcpy(parts[a], whole[a] + at * sizeof(float), count * sizeof(float));
  }
  update_vectors<Wide, Lanes>({parts[0], parts[1], parts[2], source}, 0, sum, update);
  for (std::size_t a = 0; a <= Update::kStates; ++a) {
    std::memcpy(whole[a] + at * sizeof(float), parts[a], count * sizeof(float));
  }
  if constexpr (Lanes::kElementBytes != sizeof(float)) {
    std::memcpy(arrays.rounded + at * Lanes::kElementBytes, source, count * Lanes::kElementBytes);
  }
}

template <typename Wide, typename Lanes, OptimizerRule kRule, bool kLimits, bool kDecays>
void optimize(const OptimizerArrays& arrays, const void* const* sources, std::size_t source_count,
              std::size_t count, const OptimizerStep& step) noexcept {
  constexpr std::size_t kBlockVectors = 4;
  constexpr std::size_t kBlock = kBlockVectors * Wide::kLanes;
  const PieceArrays piece = {
      reinterpret_cast<std::byte*>(arrays.weights), reinterpret_cast<std::byte*>(arrays.first),
      reinterpret_cast<std::byte*>(arrays.second), static_cast<std::byte*>(arrays.rounded)};
  const Update<Wide, kRule, kLimits, kDecays> update(step);
  std::size_t at = 0;
  if constexpr (Wide::kLanes > 1) {
    for (; count - at >= kBlock; at += kBlock) {
      optimize_block<Wide, Lanes, kBlockVectors>(piece, sources, source_count, at, update);
    }
  }
  for (; count - at >= Wide::kLanes; at += Wide::kLanes) {
    optimize_block<Wide, Lanes, 1>(piece, sources, source_count, at, update);
  }
  if constexpr (Wide::kLanes > 1) {
    if (at == count) return;
    optimize_tail<Wide, Lanes>(piece, sources, source_count, at, count - at, update);
  }
}

template <typename Wide, typename Lanes, OptimizerRule kRule>
constexpr void fill_rule(OptimizeFunction (&row)[kOptimizerRules][kPreparations]) {
  OptimizeFunction(&forms)[kPreparations] = row[static_cast<std::size_t>(kRule)];
  // Adamw's decay is part of its step.
  constexpr bool kDecays = kRule != OptimizerRule::adamw;
  forms[0] = optimize<Wide, Lanes, kRule, false, false>;
  forms[1] = optimize<Wide, Lanes, kRule, true, false>;
  forms[2] = optimize<Wide, Lanes, kRule, false, kDecays>;
  forms[3] = optimize<Wide, Lanes, kRule, true, kDecays>;
}

template <typename Wide, typename Lanes>
constexpr void fill_rules(OptimizeFunction (&row)[kOptimizerRules][kPreparations]) {
  fill_rule<Wide, Lanes, OptimizerRule::sgd>(row);
  fill_rule<Wide, Lanes, OptimizerRule::momentum>(row);
  fill_rule<Wide, Lanes, OptimizerRule::nesterov>(row);
  fill_rule<Wide, Lanes, OptimizerRule::adam>(row);
  fill_rule<Wide, Lanes, OptimizerRule::adamw>(row);
}

template <typename Float32, typename Float16, typename Bfloat16>
constexpr Optimizers make_optimizers() {
  Optimizers optimizers = {};
  fill_rules<Float32, Float32>(optimizers.functions[0]);
  fill_rules<Float32, Float16>(optimizers.functions[1]);
  fill_rules<Float32, Bfloat16>(optimizers.functions[2]);
  return optimizers;
}

}  // namespace
}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_OPTIMIZER_LOOP_H_
