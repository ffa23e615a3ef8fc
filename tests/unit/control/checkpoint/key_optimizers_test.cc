#include "control/checkpoint/key_optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/checkpoint/optimizer_settings.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

using testing::HasSubstr;

const std::vector<HubKey>& keys() {
  static const std::vector<HubKey> all = {{"block.0.norm.weight", 8},
                                          {"block.0.fc.weight", 8},
                                          {"block.0.fc.bias", 8},
                                          {"tf/bias:0", 8}};
  return all;
}

std::vector<double> decays(std::string_view text) {
  std::vector<double> decays;
  for (const auto& its : parse_key_optimizers(text, keys(), "x").of_keys) {
    decays.push_back(its.weight_decay);
  }
  return decays;
}

std::string key_refusal(std::string_view text) {
  return message_of<UsageError>([&] { parse_key_optimizers(text, keys(), "--optimizer"); });
}

TEST(KeyOptimizers, AreThoseOfTheHubWhereAKeyHasNone) {
  const KeyOptimizers optimizers = parse_key_optimizers("momentum:lr=0.5", keys(), "x");
  EXPECT_EQ(optimizers.of_hub, parse_optimizer("momentum:lr=0.5", "x"));
  EXPECT_EQ(optimizers.of_keys, std::vector(keys().size(), optimizers.of_hub));
}

TEST(KeyOptimizers, NameKeysByTheirBeginningTheirEndAndWhatTheyHave) {
  using Decays = std::vector<double>;
  EXPECT_EQ(decays("sgd:weight-decay=1;*bias:weight-decay=0"), (Decays{1, 1, 0, 1}));
  EXPECT_EQ(decays("sgd:weight-decay=1;block*:weight-decay=0"), (Decays{0, 0, 0, 1}));
  EXPECT_EQ(decays("sgd:weight-decay=1;*.norm.*:weight-decay=0"), (Decays{0, 1, 1, 1}));
  EXPECT_EQ(decays("sgd:weight-decay=1;*:weight-decay=0"), (Decays{0, 0, 0, 0}));
  EXPECT_EQ(decays("sgd:weight-decay=1;tf/bias:0:weight-decay=0"), (Decays{1, 1, 1, 0}));
  EXPECT_EQ(decays("sgd;*weight:weight-decay=2;block.0.norm.weight:weight-decay=3"),
            (Decays{3, 2, 0, 0}));
}

TEST(KeyOptimizers, LeaveWhatTheyDoNotName) {
  const KeyOptimizers optimizers =
      parse_key_optimizers("adamw:lr=0.5,eps=0.25;*bias:lr=2;*fc*:clip=3", keys(), "x");
  EXPECT_EQ(optimizers.of_hub, parse_optimizer("adamw:lr=0.5,eps=0.25", "x"));
  EXPECT_EQ(optimizers.of_keys[0], optimizers.of_hub);
  EXPECT_EQ(optimizers.of_keys[2], parse_optimizer("adamw:lr=2,eps=0.25,clip=3", "x"));
}

TEST(KeyOptimizers, RefuseWhatMeansNothing) {
  EXPECT_EQ(key_refusal("sgd;*bais:lr=1"),
            "--optimizer: of the keys \"*bais\": the hub has none of this name");
  EXPECT_THAT(key_refusal("sgd;bias"), HasSubstr("expected a colon and their settings"));
  EXPECT_THAT(key_refusal("sgd;;*bias:lr=1"), HasSubstr("expected a colon"));
  EXPECT_THAT(key_refusal("sgd;:lr=1"), HasSubstr("expected a key's name"));
  EXPECT_THAT(key_refusal("sgd;a*b:lr=1"), HasSubstr("only at the beginning and at the end"));
  EXPECT_THAT(key_refusal("sgd;*:"), HasSubstr("no setting \"\""));
  EXPECT_THAT(key_refusal("sgd;*:momentum=0.9"), HasSubstr("sgd has no setting \"momentum\""));
  EXPECT_THAT(key_refusal("sgd;*:lr=-1"), HasSubstr("lr=-1; expected"));
  EXPECT_THAT(key_refusal("rmsprop;*:lr=1"), HasSubstr("there is no optimizer \"rmsprop\""));
}

TEST(KeyOptimizers, CompareOnlySoManyPatternsWithEveryKey) {
  std::string text = "sgd";
  for (std::size_t i = 0; i < kMostKeyPatterns; ++i) text += ";*:lr=1";
  EXPECT_EQ(key_refusal(text), "");
  EXPECT_THAT(key_refusal(text + ";*:lr=1"), HasSubstr("at most 64 names with a *"));
}

}  // namespace
}  // namespace gradcube::control
