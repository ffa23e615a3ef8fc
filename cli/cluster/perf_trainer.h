// A trainer that a command makes or starts.
#ifndef GRADCUBE_CLI_CLUSTER_PERF_TRAINER_H_
#define GRADCUBE_CLI_CLUSTER_PERF_TRAINER_H_

#include <string>

#include "control/plan/base/placement.h"

namespace gradcube::cli {

// A trainer's rank whose server is here, and where it takes trainers.
struct PerfTrainer {
  control::Rank rank = 0;
  unsigned local = 0;  // of the server's trainers
  std::string socket;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_PERF_TRAINER_H_
