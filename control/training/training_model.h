// What an iteration of training takes on N nodes whose gradients travel by a policy of
// control/merge/: the simulation of MG-WFBP's section V-C, whose Fig. 9 it makes.
//
// A network gives the bytes of each layer. The time of each layer is one that was measured on a CPU
// (backward_times.h), and so is the forward pass; all are scaled by one factor for the network, so
// that both passes together take what they take on the paper's GPU, a Tesla K80. The paper shows
// that time only in a picture, Fig. 8. gpu_seconds() is the one with which, at 64 nodes, an
// iteration by WFBP takes as many times that by MG-WFBP as the text says: 1.78 for GoogleNet, 1.75
// for ResNet-50. What the text says of SyncEASGD and of other numbers of nodes is then for the
// model to tell. The text has no ratio for other networks: they take the geometric mean of the two
// factors.
//
// An all-reduce is the paper's ring (Table II) on 10 Gbit/s Ethernet, with
//
//   alpha  45.26 us: the text's a is 90.52, 271.56 and 633.64 us on 2, 4 and 8 nodes, 2(N-1) alpha
//   beta   0.8 ns per byte, 10 Gbit/s
//   gamma  0.1143 ns per byte: on 8 nodes, 200 KB take "about 1.5 ms" and 400 KB 1.8 ms (section
//          I), so b = 1.5 ns = 14/8 beta + 7/8 gamma
//
// Pure functions.
#ifndef GRADCUBE_CONTROL_TRAINING_TRAINING_MODEL_H_
#define GRADCUBE_CONTROL_TRAINING_TRAINING_MODEL_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "control/merge/iteration.h"
#include "control/merge/policies.h"
#include "control/model/mgwfbp_model.h"
#include "control/training/networks.h"

namespace gradcube::control::training {

inline constexpr model::NodeCosts kPaperCosts = {
    .alpha = 45.26e-6, .beta = 0.8e-9, .gamma = (1.5e-9 - 1.75 * 0.8e-9) / 0.875};

// t_f + t_b on the paper's GPU. Throws std::invalid_argument for a name that is none of
// network_names().
double gpu_seconds(std::string_view network);

// The layers of the network with the times of the CPU, scaled to `computing_seconds` together.
merge::Iteration iteration_of(const Network& network, double computing_seconds,
                              const model::AllReduceCost& cost);

struct PolicyTime {
  merge::Policy policy = merge::Policy::wfbp;
  std::size_t messages = 0;
  double seconds = 0;  // t_iter
  // How many times as long an iteration by these takes.
  double speedup_over_wfbp = 1;
  double speedup_over_synceasgd = 1;
};

// Of all policies, in their order.
std::vector<PolicyTime> policy_times(const merge::Iteration& iteration);

}  // namespace gradcube::control::training

#endif  // GRADCUBE_CONTROL_TRAINING_TRAINING_MODEL_H_
