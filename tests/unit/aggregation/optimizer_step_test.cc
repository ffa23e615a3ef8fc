#include "aggregation/optimizer_step.h"

#include <cmath>
#include <gtest/gtest.h>

namespace gradcube::aggregation::test {
namespace {

TEST(OptimizerStep, HasNamesThatReadBack) {
  for (std::size_t i = 0; i < kOptimizerRules; ++i) {
    const auto rule = static_cast<OptimizerRule>(i);
    EXPECT_EQ(parse_optimizer_rule(optimizer_rule_name(rule)), rule);
  }
  EXPECT_EQ(optimizer_rule_name(static_cast<OptimizerRule>(9)), "?");
  EXPECT_EQ(parse_optimizer_rule("SGD"), std::nullopt);
}

TEST(OptimizerStep, CopiesTheFirstGradientWithoutDampening) {
  OptimizerSettings settings;
  settings.rule = OptimizerRule::momentum;
  settings.momentum = 0.75;
  settings.dampening = 0.25;
  EXPECT_EQ(optimizer_step(settings, 0.1, 1, 1).first_decay, 0);
  EXPECT_EQ(optimizer_step(settings, 0.1, 1, 1).first_weight, 1);
  EXPECT_EQ(optimizer_step(settings, 0.1, 2, 1).first_decay, 0.75F);
  EXPECT_EQ(optimizer_step(settings, 0.1, 2, 1).first_weight, 0.75F);
}

TEST(OptimizerStep, CorrectsTheBiasOfAdamLessFromStepToStep) {
  OptimizerSettings settings;
  settings.rule = OptimizerRule::adam;
  settings.beta1 = 0.5;
  settings.beta2 = 0.75;
  const OptimizerStep first = optimizer_step(settings, 0.25, 1, 1);
  EXPECT_EQ(first.minus_rate, -0.5F);
  EXPECT_EQ(first.second_correction, 0.5F);
  EXPECT_EQ(optimizer_step(settings, 0.25, 2, 1).minus_rate, static_cast<float>(-0.25 / 0.75));
  EXPECT_EQ(optimizer_step(settings, 0.25, 1000, 1).minus_rate, -0.25F);
  EXPECT_EQ(optimizer_step(settings, 0.25, 1000, 1).second_correction, 1);
}

TEST(OptimizerStep, TakesTheLearningRateOfTheStepAndNotThatOfTheSettings) {
  OptimizerSettings settings;
  settings.rule = OptimizerRule::adamw;
  settings.weight_decay = 0.5;
  EXPECT_EQ(optimizer_step(settings, 0.25, 1, 1).keep, 0.875F);
  EXPECT_EQ(optimizer_step(settings, 0.5, 1, 1).keep, 0.75F);
}

TEST(OptimizerStep, ChoosesTheFormWithNothingThatTheSettingsDoNotAskFor) {
  OptimizerSettings settings;
  EXPECT_EQ(optimizer_form(settings, 1).preparation(), 0u);
  EXPECT_TRUE(optimizer_form(settings, 2).limits);
  settings.clip = 1;
  EXPECT_TRUE(optimizer_form(settings, 1).limits);
  settings.weight_decay = 0.1;
  EXPECT_TRUE(optimizer_form(settings, 1).decays);
  settings.rule = OptimizerRule::adamw;
  EXPECT_FALSE(optimizer_form(settings, 1).decays);
}

}  // namespace
}  // namespace gradcube::aggregation::test
