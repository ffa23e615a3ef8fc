// What an optimizer is set to, and the numbers of one of its steps, which are the same for all
// elements. optimizer.h says what is computed with them.
//
// Settings are given in float64, as PyTorch has them. optimizer_step() computes each number of a
// step in float64 and rounds it to float32 once, as PyTorch does. It takes the learning rate of
// each step, because a trainer may change it between steps.
// control/checkpoint/optimizer_settings.h reads settings and says what is wrong with them.
//
// All functions here are pure. Any thread may call them.
#ifndef GRADCUBE_AGGREGATION_OPTIMIZER_STEP_H_
#define GRADCUBE_AGGREGATION_OPTIMIZER_STEP_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace gradcube::aggregation {

// The numbers stand in checkpoint files.
enum class OptimizerRule : std::uint8_t {
  sgd = 0,
  momentum = 1,
  nesterov = 2,
  adam = 3,
  adamw = 4,
};
inline constexpr std::size_t kOptimizerRules = 5;

// "sgd", "momentum", "nesterov", "adam", "adamw"; "?" for a value outside the enumeration.
std::string_view optimizer_rule_name(OptimizerRule rule) noexcept;
std::optional<OptimizerRule> parse_optimizer_rule(std::string_view name) noexcept;

// The float32 arrays of state beside the weights: 0 of sgd, 1 of momentum and nesterov, 2 of adam
// and adamw. All begin as zeros.
constexpr std::size_t optimizer_states(OptimizerRule rule) noexcept {
  if (rule == OptimizerRule::sgd) return 0;
  return rule == OptimizerRule::momentum || rule == OptimizerRule::nesterov ? 1 : 2;
}

struct OptimizerSettings {
  OptimizerRule rule = OptimizerRule::sgd;
  double learning_rate = 0.01;
  double momentum = 0;   // of momentum and nesterov
  double dampening = 0;  // of momentum
  double beta1 = 0.9;    // beta1, beta2 and epsilon: of adam and adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double clip = std::numeric_limits<double>::infinity();  // each gradient's greatest magnitude

  bool operator==(const OptimizerSettings&) const = default;
};

// Which kernel does the steps of these settings.
struct OptimizerForm {
  OptimizerRule rule;
  bool limits;  // divides the sum or clips the gradient
  bool decays;  // adds a part of the weights to the gradient

  constexpr std::size_t preparation() const noexcept {
    return (limits ? std::size_t{1} : 0) + (decays ? std::size_t{2} : 0);
  }
};
inline constexpr std::size_t kPreparations = 4;

// `divisor` is 1 for a sum of gradients and the number of trainers for their mean.
OptimizerForm optimizer_form(const OptimizerSettings& settings, std::uint32_t divisor) noexcept;

struct OptimizerStep {
  float divisor;
  float clip;
  float weight_decay;  // of the form that decays
  float keep;          // 1 - rate * weight_decay, of adamw
  float momentum;
  float first_decay;   // what m is multiplied by
  float first_weight;  // what g is multiplied by where it is added to m
  float second_decay;  // the same of v and g^2
  float second_weight;
  float minus_rate;         // of adam and adamw: with the correction of m
  float second_correction;  // sqrt(1 - beta2^t)
  float epsilon;
};

// The numbers of step `step` >= 1 with this learning rate in place of the settings' own.
OptimizerStep optimizer_step(const OptimizerSettings& settings, double learning_rate,
                             std::uint64_t step, std::uint32_t divisor) noexcept;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_OPTIMIZER_STEP_H_
