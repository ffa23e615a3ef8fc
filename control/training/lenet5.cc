// What BML calls LeNet-5 (section 4.1): "a 5-layer model, with a total number of 3.27 million
// parameters", 12.5 MB. LeCun's own network has 60 thousand. The number is that of the network in
// TensorFlow's tutorial for the same digits, and BML is built on TensorFlow: two convolutions of
// 5x5, a hidden layer of 1024 and an output layer. Four of its layers have parameters; the MB are
// MiB.
#include "control/training/networks.h"

namespace gradcube::control::training {

std::vector<NetworkLayer> lenet5_layers() {
  LayerList list;
  list.conv("conv1", 1, 32, 5);
  list.conv("conv2", 32, 64, 5);
  list.linear("fc1", std::uint64_t{7} * 7 * 64, 1024);
  list.linear("fc2", 1024, 10);
  return std::move(list).take();
}

}  // namespace gradcube::control::training
