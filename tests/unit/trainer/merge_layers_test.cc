// gradcube_merge_layers(): the numbers of the all-reduces, and what it refuses. What the policies
// choose is tested in merge_policies_test.cc.
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

using Numbers = std::vector<std::size_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// docs/mg-wfbp.md's: the smallest for which Algorithm 1 is not optimal.
std::vector<gradcube_layer> three_layers() {
  return {{1'000'000, 0.002}, {1'000'000, 0.001}, {1'000'000, 0.001}};
}

Numbers merged(int policy) {
  const std::vector<gradcube_layer> layers = three_layers();
  Numbers numbers(layers.size());
  EXPECT_EQ(
      gradcube_merge_layers(policy, 0.002, 1e-9, layers.data(), layers.size(), numbers.data()),
      GRADCUBE_OK)
      << gradcube_last_error(nullptr);
  return numbers;
}

void expect_refused(int code, const std::string& reason) {
  EXPECT_EQ(code, GRADCUBE_EINVAL);
  EXPECT_NE(std::string(gradcube_last_error(nullptr)).find(reason), std::string::npos)
      << gradcube_last_error(nullptr);
}

TEST(MergeLayers, EachPolicyNumbersItsAllReducesInTheOrderOfSending) {
  EXPECT_EQ(merged(GRADCUBE_WFBP), (Numbers{2, 1, 0}));
  EXPECT_EQ(merged(GRADCUBE_SYNCEASGD), (Numbers{0, 0, 0}));
  EXPECT_EQ(merged(GRADCUBE_MGWFBP), (Numbers{1, 0, 0}));
  EXPECT_EQ(merged(GRADCUBE_OPTIMAL), (Numbers{1, 1, 0}));
}

TEST(MergeLayers, APolicyThatThereIsNotIsRefused) {
  const std::vector<gradcube_layer> layers = three_layers();
  Numbers numbers(layers.size(), 7);
  for (const int policy : {-1, 4}) {
    expect_refused(gradcube_merge_layers(policy, 0, 0, layers.data(), 3, numbers.data()),
                   "no policy " + std::to_string(policy));
  }
  EXPECT_EQ(numbers, (Numbers{7, 7, 7}));
}

TEST(MergeLayers, WhatIsNoTimeIsRefused) {
  std::vector<gradcube_layer> layers = three_layers();
  Numbers numbers(layers.size());
  const auto merge = [&](double alpha, double beta) {
    return gradcube_merge_layers(GRADCUBE_OPTIMAL, alpha, beta, layers.data(), layers.size(),
                                 numbers.data());
  };
  for (const double bad : {-1e-9, kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    expect_refused(merge(bad, 0), "alpha and beta");
    expect_refused(merge(0, bad), "alpha and beta");
    layers[1].backward_seconds = bad;
    expect_refused(merge(0, 0), "layer 1");
    layers[1].backward_seconds = 0;
  }
  EXPECT_EQ(merge(0, 0), GRADCUBE_OK);
}

TEST(MergeLayers, TimesWhoseSumsCouldBeInfiniteAreRefused) {
  std::vector<gradcube_layer> layers(2, gradcube_layer{1'000'000, 0});
  Numbers numbers(layers.size());
  const auto merge = [&](double alpha, double beta) {
    return gradcube_merge_layers(GRADCUBE_OPTIMAL, alpha, beta, layers.data(), layers.size(),
                                 numbers.data());
  };
  expect_refused(merge(0, 1e308), "seconds per byte, 0 to 1");
  expect_refused(merge(0, 1.001), "seconds per byte, 0 to 1");
  expect_refused(merge(1.001e9, 0), "seconds, 0 to 10^9");
  layers[1].backward_seconds = 1.001e9;
  expect_refused(merge(0, 0), "expected 0 to 10^9");
  layers[1].backward_seconds = 1e9;
  EXPECT_EQ(merge(1e9, 1), GRADCUBE_OK);
}

TEST(MergeLayers, NumbersOfLayersAndBytesHaveLimits) {
  std::vector<gradcube_layer> layers(10'001, gradcube_layer{1, 0});
  Numbers numbers(layers.size());
  const auto merge = [&](std::size_t count) {
    return gradcube_merge_layers(GRADCUBE_WFBP, 0, 0, layers.data(), count, numbers.data());
  };
  expect_refused(merge(0), "0 layers");
  expect_refused(merge(10'001), "10001 layers");
  EXPECT_EQ(merge(10'000), GRADCUBE_OK);
  layers[2].bytes = std::numeric_limits<std::uint64_t>::max();
  expect_refused(merge(3), "2^53 bytes");
  EXPECT_EQ(merge(2), GRADCUBE_OK);
}

TEST(MergeLayers, PointersThatAreNullAreRefused) {
  const std::vector<gradcube_layer> layers = three_layers();
  std::size_t number = 0;
  expect_refused(gradcube_merge_layers(GRADCUBE_WFBP, 0, 0, nullptr, 1, &number), "'layers'");
  expect_refused(gradcube_merge_layers(GRADCUBE_WFBP, 0, 0, layers.data(), 1, nullptr),
                 "'message_of'");
}

}  // namespace
}  // namespace gradcube::trainer
