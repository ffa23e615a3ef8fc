// The networks whose training MG-WFBP and BML measured, layer by layer. Each has a file of its own.
//
//   googlenet  Szegedy et al. 2015, Table 1, with both auxiliary heads, which train along
//   resnet50   He et al. 2016, Table 1
//   vgg19      Simonyan and Zisserman 2015, Table 1, column E
//   lenet5     what BML calls LeNet-5: 3.27 million parameters, 12.5 MB
//
// Values and pure functions.
#ifndef GRADCUBE_CONTROL_TRAINING_NETWORKS_H_
#define GRADCUBE_CONTROL_TRAINING_NETWORKS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "control/training/layer_list.h"

namespace gradcube::control::training {

struct Network {
  std::string_view name;   // "resnet50"
  std::string_view title;  // "ResNet-50"
  std::vector<NetworkLayer> layers;

  std::uint64_t parameters() const;
};

// In the order above.
std::vector<std::string_view> network_names();

// Throws std::invalid_argument for a name that is none of network_names().
Network make_network(std::string_view name);

// googlenet.cc, resnet50.cc, vgg19.cc, lenet5.cc
std::vector<NetworkLayer> googlenet_layers();
std::vector<NetworkLayer> resnet50_layers();
std::vector<NetworkLayer> vgg19_layers();
std::vector<NetworkLayer> lenet5_layers();

}  // namespace gradcube::control::training

#endif  // GRADCUBE_CONTROL_TRAINING_NETWORKS_H_
