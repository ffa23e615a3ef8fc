#include "control/training/layer_list.h"

#include <utility>

namespace gradcube::control::training {

void LayerList::conv(std::string name, std::uint64_t inputs, std::uint64_t outputs,
                     std::uint64_t kernel) {
  layers_.push_back({std::move(name), kernel * kernel * inputs * outputs + outputs});
}

void LayerList::normed_conv(const std::string& name, std::uint64_t inputs, std::uint64_t outputs,
                            std::uint64_t kernel) {
  layers_.push_back({name, kernel * kernel * inputs * outputs});
  layers_.push_back({name + "_bn", 2 * outputs});
}

void LayerList::linear(std::string name, std::uint64_t inputs, std::uint64_t outputs) {
  layers_.push_back({std::move(name), inputs * outputs + outputs});
}

}  // namespace gradcube::control::training
