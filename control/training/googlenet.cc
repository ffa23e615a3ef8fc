// GoogleNet: Szegedy et al., "Going deeper with convolutions", 2015, Table 1, and section 5 for the
// auxiliary heads, which stand behind the inceptions 4a and 4d. Table 1 counts weights alone, in
// 1024s.
#include "control/training/networks.h"

namespace gradcube::control::training {
namespace {

// A row of Table 1: "#1x1", "#3x3 reduce", "#3x3", "#5x5 reduce", "#5x5", "pool proj".
struct Inception {
  const char* name;
  std::uint64_t one;
  std::uint64_t reduce3;
  std::uint64_t three;
  std::uint64_t reduce5;
  std::uint64_t five;
  std::uint64_t pool;
  const char* head = nullptr;  // of the auxiliary classifier behind it
};

constexpr Inception kInceptions[] = {
    {"3a", 64, 96, 128, 16, 32, 32},           {"3b", 128, 128, 192, 32, 96, 64},
    {"4a", 192, 96, 208, 16, 48, 64, "loss1"}, {"4b", 160, 112, 224, 24, 64, 64},
    {"4c", 128, 128, 256, 24, 64, 64},         {"4d", 112, 144, 288, 32, 64, 64, "loss2"},
    {"4e", 256, 160, 320, 32, 128, 128},       {"5a", 256, 160, 320, 32, 128, 128},
    {"5b", 384, 192, 384, 48, 128, 128}};

// Gives the number of its outputs.
std::uint64_t add_inception(LayerList& list, const Inception& inception, std::uint64_t inputs) {
  const std::string name = std::string("inception_") + inception.name + "/";
  list.conv(name + "1x1", inputs, inception.one, 1);
  list.conv(name + "3x3_reduce", inputs, inception.reduce3, 1);
  list.conv(name + "3x3", inception.reduce3, inception.three, 3);
  list.conv(name + "5x5_reduce", inputs, inception.reduce5, 1);
  list.conv(name + "5x5", inception.reduce5, inception.five, 5);
  list.conv(name + "pool_proj", inputs, inception.pool, 1);
  return inception.one + inception.three + inception.five + inception.pool;
}

void add_head(LayerList& list, const std::string& name, std::uint64_t inputs) {
  list.conv(name + "/conv", inputs, 128, 1);
  list.linear(name + "/fc", std::uint64_t{4} * 4 * 128, 1024);
  list.linear(name + "/classifier", 1024, 1000);
}

}  // namespace

std::vector<NetworkLayer> googlenet_layers() {
  LayerList list;
  list.conv("conv1", 3, 64, 7);
  list.conv("conv2/3x3_reduce", 64, 64, 1);
  list.conv("conv2/3x3", 64, 192, 3);
  std::uint64_t channels = 192;
  for (const Inception& inception : kInceptions) {
    channels = add_inception(list, inception, channels);
    if (inception.head != nullptr) add_head(list, inception.head, channels);
  }
  list.linear("loss3/classifier", channels, 1000);
  return std::move(list).take();
}

}  // namespace gradcube::control::training
