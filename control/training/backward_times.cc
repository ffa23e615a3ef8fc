// Written by scripts/measure_backward.py; backward_times.h explains the numbers.
//
// PyTorch 1.13.0a0 on 1 of 2 cores, Intel(R) Xeon(R) Processor
#include "control/training/backward_times.h"

#include <array>
#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control::training {
namespace {

constexpr std::array kResnet50 = {
    LayerTime{"conv1", 73433.1},           LayerTime{"conv1_bn", 85891.9},
    LayerTime{"res2a_branch1", 93707.2},   LayerTime{"res2a_branch1_bn", 40161.0},
    LayerTime{"res2a_branch2a", 27229.2},  LayerTime{"res2a_branch2a_bn", 13384.7},
    LayerTime{"res2a_branch2b", 111774.0}, LayerTime{"res2a_branch2b_bn", 13619.1},
    LayerTime{"res2a_branch2c", 90090.9},  LayerTime{"res2a_branch2c_bn", 62538.3},
    LayerTime{"res2b_branch2a", 102113.2}, LayerTime{"res2b_branch2a_bn", 13399.1},
    LayerTime{"res2b_branch2b", 108401.7}, LayerTime{"res2b_branch2b_bn", 14156.3},
    LayerTime{"res2b_branch2c", 90424.2},  LayerTime{"res2b_branch2c_bn", 73253.9},
    LayerTime{"res2c_branch2a", 120477.2}, LayerTime{"res2c_branch2a_bn", 12944.6},
    LayerTime{"res2c_branch2b", 110191.8}, LayerTime{"res2c_branch2b_bn", 13407.4},
    LayerTime{"res2c_branch2c", 92141.0},  LayerTime{"res2c_branch2c_bn", 94008.3},
    LayerTime{"res3a_branch1", 197523.6},  LayerTime{"res3a_branch1_bn", 17231.9},
    LayerTime{"res3a_branch2a", 81723.2},  LayerTime{"res3a_branch2a_bn", 6590.3},
    LayerTime{"res3a_branch2b", 96630.6},  LayerTime{"res3a_branch2b_bn", 6586.4},
    LayerTime{"res3a_branch2c", 62985.9},  LayerTime{"res3a_branch2c_bn", 29238.1},
    LayerTime{"res3b_branch2a", 68869.5},  LayerTime{"res3b_branch2a_bn", 7033.4},
    LayerTime{"res3b_branch2b", 95009.0},  LayerTime{"res3b_branch2b_bn", 6283.0},
    LayerTime{"res3b_branch2c", 62723.3},  LayerTime{"res3b_branch2c_bn", 28045.9},
    LayerTime{"res3c_branch2a", 68764.1},  LayerTime{"res3c_branch2a_bn", 6996.3},
    LayerTime{"res3c_branch2b", 96014.3},  LayerTime{"res3c_branch2b_bn", 6698.6},
    LayerTime{"res3c_branch2c", 63985.6},  LayerTime{"res3c_branch2c_bn", 29755.5},
    LayerTime{"res3d_branch2a", 68736.5},  LayerTime{"res3d_branch2a_bn", 6558.8},
    LayerTime{"res3d_branch2b", 95560.3},  LayerTime{"res3d_branch2b_bn", 6633.2},
    LayerTime{"res3d_branch2c", 62646.6},  LayerTime{"res3d_branch2c_bn", 29921.4},
    LayerTime{"res4a_branch1", 121720.7},  LayerTime{"res4a_branch1_bn", 9805.2},
    LayerTime{"res4a_branch2a", 44344.0},  LayerTime{"res4a_branch2a_bn", 4033.3},
    LayerTime{"res4a_branch2b", 88071.0},  LayerTime{"res4a_branch2b_bn", 3597.7},
    LayerTime{"res4a_branch2c", 49549.5},  LayerTime{"res4a_branch2c_bn", 15321.0},
    LayerTime{"res4b_branch2a", 53782.5},  LayerTime{"res4b_branch2a_bn", 3943.9},
    LayerTime{"res4b_branch2b", 87356.6},  LayerTime{"res4b_branch2b_bn", 3830.1},
    LayerTime{"res4b_branch2c", 49627.2},  LayerTime{"res4b_branch2c_bn", 15257.7},
    LayerTime{"res4c_branch2a", 54254.0},  LayerTime{"res4c_branch2a_bn", 3932.6},
    LayerTime{"res4c_branch2b", 88447.6},  LayerTime{"res4c_branch2b_bn", 3671.1},
    LayerTime{"res4c_branch2c", 49765.4},  LayerTime{"res4c_branch2c_bn", 15446.5},
    LayerTime{"res4d_branch2a", 53851.3},  LayerTime{"res4d_branch2a_bn", 3941.7},
    LayerTime{"res4d_branch2b", 89186.6},  LayerTime{"res4d_branch2b_bn", 3601.3},
    LayerTime{"res4d_branch2c", 49574.7},  LayerTime{"res4d_branch2c_bn", 15035.5},
    LayerTime{"res4e_branch2a", 53386.1},  LayerTime{"res4e_branch2a_bn", 3795.0},
    LayerTime{"res4e_branch2b", 86928.6},  LayerTime{"res4e_branch2b_bn", 3563.5},
    LayerTime{"res4e_branch2c", 49360.0},  LayerTime{"res4e_branch2c_bn", 15231.1},
    LayerTime{"res4f_branch2a", 54512.9},  LayerTime{"res4f_branch2a_bn", 3869.7},
    LayerTime{"res4f_branch2b", 88487.1},  LayerTime{"res4f_branch2b_bn", 3867.0},
    LayerTime{"res4f_branch2c", 50879.0},  LayerTime{"res4f_branch2c_bn", 15872.3},
    LayerTime{"res5a_branch1", 116642.9},  LayerTime{"res5a_branch1_bn", 8046.6},
    LayerTime{"res5a_branch2a", 36063.1},  LayerTime{"res5a_branch2a_bn", 3109.8},
    LayerTime{"res5a_branch2b", 90809.2},  LayerTime{"res5a_branch2b_bn", 2174.9},
    LayerTime{"res5a_branch2c", 45546.3},  LayerTime{"res5a_branch2c_bn", 11080.4},
    LayerTime{"res5b_branch2a", 51604.5},  LayerTime{"res5b_branch2a_bn", 2366.3},
    LayerTime{"res5b_branch2b", 90074.2},  LayerTime{"res5b_branch2b_bn", 2700.8},
    LayerTime{"res5b_branch2c", 46761.5},  LayerTime{"res5b_branch2c_bn", 11417.4},
    LayerTime{"res5c_branch2a", 52725.9},  LayerTime{"res5c_branch2a_bn", 2376.4},
    LayerTime{"res5c_branch2b", 91668.9},  LayerTime{"res5c_branch2b_bn", 2722.9},
    LayerTime{"res5c_branch2c", 46298.5},  LayerTime{"res5c_branch2c_bn", 13743.5},
    LayerTime{"fc1000", 44834.3},
};

constexpr std::array kGooglenet = {
    LayerTime{"conv1", 669062.1},
    LayerTime{"conv2/3x3_reduce", 100070.0},
    LayerTime{"conv2/3x3", 2189395.0},
    LayerTime{"inception_3a/1x1", 43662.1},
    LayerTime{"inception_3a/3x3_reduce", 53598.2},
    LayerTime{"inception_3a/3x3", 151130.0},
    LayerTime{"inception_3a/5x5_reduce", 30952.2},
    LayerTime{"inception_3a/5x5", 40736.7},
    LayerTime{"inception_3a/pool_proj", 25746.9},
    LayerTime{"inception_3b/1x1", 91419.6},
    LayerTime{"inception_3b/3x3_reduce", 90735.1},
    LayerTime{"inception_3b/3x3", 297610.8},
    LayerTime{"inception_3b/5x5_reduce", 56635.5},
    LayerTime{"inception_3b/5x5", 129121.2},
    LayerTime{"inception_3b/pool_proj", 92660.0},
    LayerTime{"inception_4a/1x1", 45672.1},
    LayerTime{"inception_4a/3x3_reduce", 30147.3},
    LayerTime{"inception_4a/3x3", 59293.8},
    LayerTime{"inception_4a/5x5_reduce", 18650.0},
    LayerTime{"inception_4a/5x5", 18785.8},
    LayerTime{"inception_4a/pool_proj", 36394.7},
    LayerTime{"loss1/conv", 3258.3},
    LayerTime{"loss1/fc", 94146.2},
    LayerTime{"loss1/classifier", 45897.3},
    LayerTime{"inception_4b/1x1", 42712.3},
    LayerTime{"inception_4b/3x3_reduce", 36439.0},
    LayerTime{"inception_4b/3x3", 71797.6},
    LayerTime{"inception_4b/5x5_reduce", 20474.6},
    LayerTime{"inception_4b/5x5", 28977.5},
    LayerTime{"inception_4b/pool_proj", 21511.3},
    LayerTime{"inception_4c/1x1", 36957.8},
    LayerTime{"inception_4c/3x3_reduce", 37225.7},
    LayerTime{"inception_4c/3x3", 92215.2},
    LayerTime{"inception_4c/5x5_reduce", 22884.5},
    LayerTime{"inception_4c/5x5", 27878.9},
    LayerTime{"inception_4c/pool_proj", 21260.8},
    LayerTime{"inception_4d/1x1", 37233.8},
    LayerTime{"inception_4d/3x3_reduce", 40114.7},
    LayerTime{"inception_4d/3x3", 115513.5},
    LayerTime{"inception_4d/5x5_reduce", 25515.0},
    LayerTime{"inception_4d/5x5", 28575.7},
    LayerTime{"inception_4d/pool_proj", 41604.8},
    LayerTime{"loss2/conv", 3244.7},
    LayerTime{"loss2/fc", 92511.7},
    LayerTime{"loss2/classifier", 45296.4},
    LayerTime{"inception_4e/1x1", 63804.3},
    LayerTime{"inception_4e/3x3_reduce", 45326.7},
    LayerTime{"inception_4e/3x3", 141649.7},
    LayerTime{"inception_4e/5x5_reduce", 72090.9},
    LayerTime{"inception_4e/5x5", 44851.0},
    LayerTime{"inception_4e/pool_proj", 120661.0},
    LayerTime{"inception_5a/1x1", 23216.0},
    LayerTime{"inception_5a/3x3_reduce", 17015.8},
    LayerTime{"inception_5a/3x3", 35758.0},
    LayerTime{"inception_5a/5x5_reduce", 7606.0},
    LayerTime{"inception_5a/5x5", 11954.1},
    LayerTime{"inception_5a/pool_proj", 12689.3},
    LayerTime{"inception_5b/1x1", 32693.4},
    LayerTime{"inception_5b/3x3_reduce", 19309.3},
    LayerTime{"inception_5b/3x3", 52688.4},
    LayerTime{"inception_5b/5x5_reduce", 8979.0},
    LayerTime{"inception_5b/5x5", 15366.4},
    LayerTime{"inception_5b/pool_proj", 16086.5},
    LayerTime{"loss3/classifier", 45890.1},
};

constexpr std::array kVgg19 = {
    LayerTime{"conv1_1", 232253.1}, LayerTime{"conv1_2", 1447112.2},
    LayerTime{"conv2_1", 506760.5}, LayerTime{"conv2_2", 1127319.7},
    LayerTime{"conv3_1", 408767.4}, LayerTime{"conv3_2", 811012.5},
    LayerTime{"conv3_3", 815017.5}, LayerTime{"conv3_4", 884686.7},
    LayerTime{"conv4_1", 391164.5}, LayerTime{"conv4_2", 764010.4},
    LayerTime{"conv4_3", 751684.8}, LayerTime{"conv4_4", 741956.0},
    LayerTime{"conv5_1", 177551.9}, LayerTime{"conv5_2", 176329.1},
    LayerTime{"conv5_3", 176130.5}, LayerTime{"conv5_4", 181768.2},
    LayerTime{"fc6", 2164751.0},    LayerTime{"fc7", 362333.3},
    LayerTime{"fc8", 45898.1},
};

constexpr std::array kLenet5 = {
    LayerTime{"conv1", 9093.4},
    LayerTime{"conv2", 34016.7},
    LayerTime{"fc1", 289128.8},
    LayerTime{"fc2", 1216.6},
};

}  // namespace

BackwardTimes backward_times(std::string_view network) {
  if (network == "resnet50") {
    return {.batch = 32, .forward_microseconds = 4914841.3, .layers = kResnet50};
  }
  if (network == "googlenet") {
    return {.batch = 64, .forward_microseconds = 6295954.5, .layers = kGooglenet};
  }
  if (network == "vgg19") {
    return {.batch = 16, .forward_microseconds = 7361299.2, .layers = kVgg19};
  }
  if (network == "lenet5") {
    return {.batch = 128, .forward_microseconds = 275754.3, .layers = kLenet5};
  }
  throw std::invalid_argument(fmt::format("there are no times of {}", network));
}

}  // namespace gradcube::control::training
