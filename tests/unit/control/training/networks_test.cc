// The networks have the sizes that their papers, and those that train them, give.
#include "control/training/networks.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <string>

#include "control/training/backward_times.h"

namespace gradcube::control::training {
namespace {

std::uint64_t parameters_of(const Network& network, const std::string& begin) {
  std::uint64_t sum = 0;
  for (const NetworkLayer& layer : network.layers) {
    if (layer.name.starts_with(begin)) sum += layer.parameters;
  }
  return sum;
}

// "ResNet-50 has about 25.5 millions" (MG-WFBP, section V), and "102 MB" (section I).
TEST(Networks, HaveResNet50WithItsConvolutionsAndTheirNormalizations) {
  const Network network = make_network("resnet50");
  EXPECT_EQ(network.parameters(), 25'557'032u);
  EXPECT_EQ(network.layers.size(), 107u);
  EXPECT_EQ(std::count_if(network.layers.begin(), network.layers.end(),
                          [](const NetworkLayer& l) { return l.name.ends_with("_bn"); }),
            53);
  EXPECT_EQ(network.layers.front().parameters, 7u * 7 * 3 * 64);
  EXPECT_EQ(network.layers.back().parameters, 2048u * 1000 + 1000);
}

// "GoogleNet has about 13 millions": with both auxiliary heads. Table 1 of its paper has 6.8
// million without them: in 1024s, and of weights alone.
TEST(Networks, HaveGoogleNetWithBothAuxiliaryHeads) {
  const Network network = make_network("googlenet");
  EXPECT_EQ(network.parameters(), 13'378'280u);
  EXPECT_EQ(network.layers.size(), 64u);
  const std::uint64_t heads = parameters_of(network, "loss1/") + parameters_of(network, "loss2/");
  EXPECT_EQ(network.parameters() - heads, 6'998'552u);
}

// The column "params" of Table 1. Of 4c and 5a it has 463 and 1072, which the sizes in the same
// rows do not give.
TEST(Networks, HaveTheInceptionsOfGoogleNetsTable1) {
  const Network network = make_network("googlenet");
  const std::pair<const char*, double> rows[] = {{"inception_3a/", 159}, {"inception_3b/", 380},
                                                 {"inception_4a/", 364}, {"inception_4b/", 437},
                                                 {"inception_4d/", 580}, {"inception_4e/", 840},
                                                 {"inception_5b/", 1388}};
  for (const auto& [name, thousands] : rows) {
    EXPECT_NEAR(static_cast<double>(parameters_of(network, name)) / 1024, thousands,
                0.02 * thousands)
        << name;
  }
}

// "The model of VGG-19 contains 19 layers and the total number of parameters is about 143.65
// million" (BML, section 4.1).
TEST(Networks, HaveVgg19) {
  const Network network = make_network("vgg19");
  EXPECT_EQ(network.parameters(), 143'667'240u);
  EXPECT_EQ(network.layers.size(), 19u);
}

// "3.27 million parameters. The size of full gradient is about 12.5MB" (BML, section 4.1).
TEST(Networks, HaveTheLeNet5OfBml) {
  const Network network = make_network("lenet5");
  EXPECT_EQ(network.parameters(), 3'274'634u);
  EXPECT_EQ(network.layers.size(), 4u);
  EXPECT_NEAR(4 * static_cast<double>(network.parameters()) / (1 << 20), 12.5, 0.01);
}

TEST(Networks, HaveNamesThatDiffer) {
  for (const std::string_view name : network_names()) {
    const Network network = make_network(name);
    EXPECT_EQ(network.name, name);
    std::set<std::string> names;
    for (const NetworkLayer& layer : network.layers) {
      EXPECT_TRUE(names.insert(layer.name).second) << layer.name;
      EXPECT_GT(layer.parameters, 0u) << layer.name;
      EXPECT_EQ(layer.bytes(), 4 * layer.parameters);
    }
  }
  EXPECT_THROW(make_network("alexnet"), std::invalid_argument);
  EXPECT_THROW(backward_times("alexnet"), std::invalid_argument);
}

TEST(BackwardTimes, AreOfTheLayersOfEachNetworkInTheirOrder) {
  for (const std::string_view name : network_names()) {
    SCOPED_TRACE(name);
    const Network network = make_network(name);
    const BackwardTimes times = backward_times(name);
    ASSERT_EQ(times.layers.size(), network.layers.size());
    double sum = times.forward_microseconds;
    for (std::size_t l = 0; l < times.layers.size(); ++l) {
      EXPECT_EQ(times.layers[l].name, network.layers[l].name);
      EXPECT_GT(times.layers[l].microseconds, 0) << times.layers[l].name;
      sum += times.layers[l].microseconds;
    }
    EXPECT_NEAR(times.seconds(), sum / 1e6, 1e-9);
  }
}

// The sub-minibatches of MG-WFBP, section V, and of BML, section 4.2.
TEST(BackwardTimes, AreOfTheBatchesOfThePapers) {
  EXPECT_EQ(backward_times("googlenet").batch, 64u);
  EXPECT_EQ(backward_times("resnet50").batch, 32u);
  EXPECT_EQ(backward_times("vgg19").batch, 16u);
  EXPECT_EQ(backward_times("lenet5").batch, 128u);
}

}  // namespace
}  // namespace gradcube::control::training
