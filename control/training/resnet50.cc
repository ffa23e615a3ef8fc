// ResNet-50: He et al., "Deep Residual Learning for Image Recognition", 2016, Table 1.
#include "control/training/networks.h"

namespace gradcube::control::training {
namespace {

struct Resnet50Stage {
  char number;
  unsigned blocks;
  std::uint64_t width;
};

constexpr Resnet50Stage kResnet50Stages[] = {
    {'2', 3, 64}, {'3', 4, 128}, {'4', 6, 256}, {'5', 3, 512}};

}  // namespace

std::vector<NetworkLayer> resnet50_layers() {
  LayerList list;
  list.normed_conv("conv1", 3, 64, 7);
  std::uint64_t inputs = 64;
  for (const Resnet50Stage& stage : kResnet50Stages) {
    for (unsigned block = 0; block < stage.blocks; ++block) {
      const std::string name = std::string("res") + stage.number + "abcdef"[block] + "_branch";
      const std::uint64_t outputs = 4 * stage.width;
      // The first block of a stage has another width than the one before it, so its shortcut is a
      // projection.
      if (block == 0) list.normed_conv(name + "1", inputs, outputs, 1);
      list.normed_conv(name + "2a", inputs, stage.width, 1);
      list.normed_conv(name + "2b", stage.width, stage.width, 3);
      list.normed_conv(name + "2c", stage.width, outputs, 1);
      inputs = outputs;
    }
  }
  list.linear("fc1000", inputs, 1000);
  return std::move(list).take();
}

}  // namespace gradcube::control::training
