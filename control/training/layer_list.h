// The layers of a network that have parameters, as the tables of its paper give them.
//
// Layers are in the order of the forward pass, and where branches lie beside each other, in the
// order in which the network's first implementations list them. The backward pass has their
// gradients ready in the opposite order. Activations, pooling and what else has no parameters sends
// nothing, so it is no layer here (MG-WFBP's "learnable layers").
#ifndef GRADCUBE_CONTROL_TRAINING_LAYER_LIST_H_
#define GRADCUBE_CONTROL_TRAINING_LAYER_LIST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gradcube::control::training {

struct NetworkLayer {
  std::string name;
  std::uint64_t parameters = 0;

  // The gradients are 32-bit floats (MG-WFBP, section V).
  std::uint64_t bytes() const { return 4 * parameters; }
};

class LayerList {
 public:
  // A convolution with square kernels, and a bias for each output unless it is normalized.
  void conv(std::string name, std::uint64_t inputs, std::uint64_t outputs, std::uint64_t kernel);

  // A convolution without biases, and the batch normalization behind it, which has a factor and an
  // offset for each output and is a layer of its own: NAME_bn.
  void normed_conv(const std::string& name, std::uint64_t inputs, std::uint64_t outputs,
                   std::uint64_t kernel);

  // Fully connected, with biases.
  void linear(std::string name, std::uint64_t inputs, std::uint64_t outputs);

  std::vector<NetworkLayer> take() && { return std::move(layers_); }

 private:
  std::vector<NetworkLayer> layers_;
};

}  // namespace gradcube::control::training

#endif  // GRADCUBE_CONTROL_TRAINING_LAYER_LIST_H_
