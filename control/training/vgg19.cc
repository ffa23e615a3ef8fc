// VGG-19: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
// recognition", 2015, Table 1, column E.
#include "control/training/networks.h"

namespace gradcube::control::training {
namespace {

struct Vgg19Stage {
  char number;
  char convolutions;
  std::uint64_t width;
};

constexpr Vgg19Stage kVgg19Stages[] = {
    {'1', '2', 64}, {'2', '2', 128}, {'3', '4', 256}, {'4', '4', 512}, {'5', '4', 512}};

}  // namespace

std::vector<NetworkLayer> vgg19_layers() {
  LayerList list;
  std::uint64_t inputs = 3;
  for (const Vgg19Stage& stage : kVgg19Stages) {
    for (char number = '1'; number <= stage.convolutions; ++number) {
      list.conv(std::string("conv") + stage.number + "_" + number, inputs, stage.width, 3);
      inputs = stage.width;
    }
  }
  list.linear("fc6", inputs * 7 * 7, 4096);
  list.linear("fc7", 4096, 4096);
  list.linear("fc8", 4096, 1000);
  return std::move(list).take();
}

}  // namespace gradcube::control::training
