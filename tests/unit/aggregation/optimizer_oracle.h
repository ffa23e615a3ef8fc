// What the optimizers must return, computed in another way: one element at a time, with the
// library's fma(), in the words of aggregation/optimizer.h.
#ifndef GRADCUBE_TESTS_UNIT_AGGREGATION_OPTIMIZER_ORACLE_H_
#define GRADCUBE_TESTS_UNIT_AGGREGATION_OPTIMIZER_ORACLE_H_

#include <cmath>
#include <span>

#include "aggregation/optimizer_step.h"

namespace gradcube::aggregation::test {

struct OptimizedElement {
  float weight;
  float first;
  float second;
};

inline float prepared_gradient(OptimizerForm form, const OptimizerStep& step, float weight,
                               std::span<const float> sources) {
  float gradient = sources[0];
  for (const float source : sources.subspan(1)) gradient += source;
  if (form.limits) {
    gradient /= step.divisor;
    if (gradient > step.clip) gradient = step.clip;
    if (gradient < -step.clip) gradient = -step.clip;
  }
  return form.decays ? std::fma(weight, step.weight_decay, gradient) : gradient;
}

inline OptimizedElement oracle_step(OptimizerForm form, const OptimizerStep& step,
                                    OptimizedElement old, std::span<const float> sources) {
  const float gradient = prepared_gradient(form, step, old.weight, sources);
  if (form.rule == OptimizerRule::sgd) {
    return {std::fma(gradient, step.minus_rate, old.weight), old.first, old.second};
  }
  OptimizedElement result = old;
  result.first = std::fma(gradient, step.first_weight, old.first * step.first_decay);
  switch (form.rule) {
    case OptimizerRule::momentum:
      result.weight = std::fma(result.first, step.minus_rate, old.weight);
      return result;
    case OptimizerRule::nesterov:
      result.weight =
          std::fma(std::fma(result.first, step.momentum, gradient), step.minus_rate, old.weight);
      return result;
    default:
      break;
  }
  result.second = std::fma(gradient * step.second_weight, gradient, old.second * step.second_decay);
  const float denominator = std::sqrt(result.second) / step.second_correction + step.epsilon;
  if (form.rule == OptimizerRule::adamw) result.weight *= step.keep;
  result.weight += result.first * step.minus_rate / denominator;
  return result;
}

}  // namespace gradcube::aggregation::test

#endif  // GRADCUBE_TESTS_UNIT_AGGREGATION_OPTIMIZER_ORACLE_H_
