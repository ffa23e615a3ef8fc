// When the layers of a network have their gradients ready, measured on a CPU.
//
// backward_times.cc is what
//
//   /usr/bin/python3 scripts/measure_backward.py > control/training/backward_times.cc
//
// has written: it builds the networks with PyTorch and notes when each layer's gradients are ready.
// The times of a GPU are others. What is taken from here is how the backward pass is divided among
// the layers, and how long the forward pass is beside it (training_model.h).
#ifndef GRADCUBE_CONTROL_TRAINING_BACKWARD_TIMES_H_
#define GRADCUBE_CONTROL_TRAINING_BACKWARD_TIMES_H_

#include <span>
#include <string_view>

namespace gradcube::control::training {

struct LayerTime {
  std::string_view name;
  double microseconds;  // of the backward pass, t_b^(l)
};

struct BackwardTimes {
  unsigned batch = 0;               // samples
  double forward_microseconds = 0;  // t_f
  std::span<const LayerTime> layers;

  // t_f + t_b.
  double seconds() const {
    double sum = forward_microseconds;
    for (const LayerTime& layer : layers) sum += layer.microseconds;
    return sum * 1e-6;
  }
};

// The layers are those of make_network(), in its order. Throws std::invalid_argument for a name
// that is none of network_names().
BackwardTimes backward_times(std::string_view network);

}  // namespace gradcube::control::training

#endif  // GRADCUBE_CONTROL_TRAINING_BACKWARD_TIMES_H_
