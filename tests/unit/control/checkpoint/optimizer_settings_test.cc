#include "control/checkpoint/optimizer_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

using aggregation::OptimizerRule;
using aggregation::OptimizerSettings;

std::string refusal(std::string_view text) {
  return message_of<UsageError>([&] { parse_optimizer(text, "--optimizer"); });
}

TEST(OptimizerSettings, HaveDefaultsOfTheirRule) {
  EXPECT_EQ(parse_optimizer("sgd", "x").learning_rate, 0.01);
  EXPECT_EQ(parse_optimizer("nesterov", "x").momentum, 0.9);
  EXPECT_EQ(parse_optimizer("adam", "x").learning_rate, 1e-3);
  EXPECT_EQ(parse_optimizer("adam", "x").weight_decay, 0);
  EXPECT_EQ(parse_optimizer("adamw", "x").weight_decay, 0.01);
  EXPECT_EQ(parse_optimizer("adamw", "x").clip, std::numeric_limits<double>::infinity());
}

TEST(OptimizerSettings, ReadEverySettingOfTheirRule) {
  const OptimizerSettings momentum =
      parse_optimizer("momentum:lr=0.5,momentum=0.25,dampening=1,weight-decay=1e-4,clip=2", "x");
  EXPECT_EQ(momentum.rule, OptimizerRule::momentum);
  EXPECT_EQ(momentum.learning_rate, 0.5);
  EXPECT_EQ(momentum.momentum, 0.25);
  EXPECT_EQ(momentum.dampening, 1);
  EXPECT_EQ(momentum.weight_decay, 1e-4);
  EXPECT_EQ(momentum.clip, 2);
  const OptimizerSettings adam = parse_optimizer("adam:beta1=0,beta2=0.5,eps=1e-6", "x");
  EXPECT_EQ(adam.beta1, 0);
  EXPECT_EQ(adam.beta2, 0.5);
  EXPECT_EQ(adam.epsilon, 1e-6);
}

TEST(OptimizerSettings, ReadBackWhatTheyPrint) {
  for (const char* text : {"sgd", "momentum:lr=0.1,dampening=0.3", "nesterov:lr=1e-30,clip=0.1",
                           "adam:eps=1e-7,weight-decay=3", "adamw:lr=0,beta2=0.123456789"}) {
    const OptimizerSettings settings = parse_optimizer(text, "x");
    EXPECT_EQ(parse_optimizer(optimizer_text(settings), "x"), settings);
  }
  EXPECT_EQ(optimizer_text(parse_optimizer("nesterov:lr=0.1,clip=1", "x")),
            "nesterov:lr=0.1,momentum=0.9,weight-decay=0,clip=1");
}

TEST(OptimizerSettings, RefuseNamesThatTheyDoNotHave) {
  EXPECT_EQ(refusal("rmsprop"),
            "--optimizer: there is no optimizer \"rmsprop\"; expected sgd, momentum, nesterov, "
            "adam or adamw, and its settings: nesterov:lr=0.1,momentum=0.9");
  EXPECT_EQ(refusal("sgd:momentum=0.9"),
            "--optimizer: sgd has no setting \"momentum\"; expected lr, weight-decay, clip");
  EXPECT_THAT(refusal("nesterov:dampening=0.1"), testing::HasSubstr("no setting \"dampening\""));
  EXPECT_THAT(refusal("adam:"), testing::HasSubstr("no setting \"\""));
  EXPECT_THAT(refusal("adam:lr=1,"), testing::HasSubstr("no setting \"\""));
  EXPECT_THAT(refusal(""), testing::HasSubstr("no optimizer \"\""));
}

TEST(OptimizerSettings, RefuseNumbersOutOfBounds) {
  for (const char* text :
       {"sgd:lr=-0.1", "sgd:lr=nan", "sgd:lr=inf", "sgd:lr=1e39", "momentum:momentum=0",
        "momentum:momentum=1", "momentum:dampening=1.5", "adam:beta1=1", "adam:beta2=-0.5",
        "adam:eps=0", "adam:eps=1e-60", "sgd:weight-decay=-1", "sgd:clip=0", "sgd:clip=-1",
        "sgd:clip=1e-60", "sgd:clip=nan"}) {
    EXPECT_THAT(refusal(text), testing::HasSubstr("; expected ")) << text;
  }
  EXPECT_EQ(refusal("adam:beta1=1"), "--optimizer: beta1=1; expected 0 or more and less than 1");
  EXPECT_EQ(refusal("sgd:lr=-1"), "--optimizer: lr=-1; expected 0 to 3.4e38");
  for (const char* text : {"sgd:lr=", "sgd:lr=1x", "sgd:lr= 1", "sgd:lr"}) {
    EXPECT_THAT(refusal(text), testing::HasSubstr("is no number")) << text;
  }
}

TEST(OptimizerSettings, RefuseASettingThatIsThereTwice) {
  EXPECT_EQ(refusal("sgd:lr=0.1,clip=1,lr=0.1"),
            "--optimizer: lr is there twice; expected it once");
}

}  // namespace
}  // namespace gradcube::control
