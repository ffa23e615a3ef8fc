#include "aggregation/optimizer_step.h"

#include <cmath>

namespace gradcube::aggregation {
namespace {

constexpr std::string_view kNames[kOptimizerRules] = {"sgd", "momentum", "nesterov", "adam",
                                                      "adamw"};

bool is_adaptive(OptimizerRule rule) { return optimizer_states(rule) == 2; }

}  // namespace

std::string_view optimizer_rule_name(OptimizerRule rule) noexcept {
  const auto index = static_cast<std::size_t>(rule);
  return index < kOptimizerRules ? kNames[index] : "?";
}

std::optional<OptimizerRule> parse_optimizer_rule(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kOptimizerRules; ++i) {
    if (name == kNames[i]) return static_cast<OptimizerRule>(i);
  }
  return std::nullopt;
}

OptimizerForm optimizer_form(const OptimizerSettings& settings, std::uint32_t divisor) noexcept {
  return {.rule = settings.rule,
          .limits = divisor != 1 || std::isfinite(settings.clip),
          .decays = settings.rule != OptimizerRule::adamw && settings.weight_decay != 0};
}

OptimizerStep optimizer_step(const OptimizerSettings& settings, double learning_rate,
                             std::uint64_t step, std::uint32_t divisor) noexcept {
  const auto rounded = [](double value) { return static_cast<float>(value); };
  const auto t = static_cast<double>(step);
  OptimizerStep numbers = {};
  numbers.divisor = static_cast<float>(divisor);
  numbers.clip = rounded(settings.clip);
  numbers.weight_decay = rounded(settings.weight_decay);
  numbers.keep = rounded(1 - learning_rate * settings.weight_decay);
  numbers.epsilon = rounded(settings.epsilon);
  if (is_adaptive(settings.rule)) {
    numbers.first_decay = rounded(settings.beta1);
    numbers.first_weight = rounded(1 - settings.beta1);
    numbers.second_decay = rounded(settings.beta2);
    numbers.second_weight = rounded(1 - settings.beta2);
    numbers.minus_rate = rounded(-(learning_rate / (1 - std::pow(settings.beta1, t))));
    numbers.second_correction = rounded(std::sqrt(1 - std::pow(settings.beta2, t)));
    return numbers;
  }
  numbers.momentum = rounded(settings.momentum);
  // The first gradient becomes m as it is.
  numbers.first_decay = step == 1 ? 0 : numbers.momentum;
  numbers.first_weight = step == 1 ? 1 : rounded(1 - settings.dampening);
  numbers.minus_rate = rounded(-learning_rate);
  return numbers;
}

}  // namespace gradcube::aggregation
