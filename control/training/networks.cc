#include "control/training/networks.h"

#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control::training {
namespace {

struct Maker {
  std::string_view name;
  std::string_view title;
  std::vector<NetworkLayer> (*layers)();
};

constexpr Maker kMakers[] = {{"googlenet", "GoogleNet", googlenet_layers},
                             {"resnet50", "ResNet-50", resnet50_layers},
                             {"vgg19", "VGG-19", vgg19_layers},
                             {"lenet5", "LeNet-5", lenet5_layers}};

}  // namespace

std::uint64_t Network::parameters() const {
  std::uint64_t sum = 0;
  for (const NetworkLayer& layer : layers) sum += layer.parameters;
  return sum;
}

std::vector<std::string_view> network_names() {
  std::vector<std::string_view> names;
  for (const Maker& maker : kMakers) names.push_back(maker.name);
  return names;
}

Network make_network(std::string_view name) {
  for (const Maker& maker : kMakers) {
    if (maker.name == name) return {maker.name, maker.title, maker.layers()};
  }
  throw std::invalid_argument(fmt::format("there is no network {}", name));
}

}  // namespace gradcube::control::training
