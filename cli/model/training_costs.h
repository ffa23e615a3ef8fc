// What a message between two nodes costs in `gradcube model training` and `gradcube model fit
// --nodes`: what the options say, else what was fitted on the running cluster, if that is asked
// for, else what MG-WFBP measured.
#ifndef GRADCUBE_CLI_MODEL_TRAINING_COSTS_H_
#define GRADCUBE_CLI_MODEL_TRAINING_COSTS_H_

#include <CLI/App.hpp>
#include <string>

#include "control/model/mgwfbp_model.h"

namespace gradcube::cli {

// Empty: not given.
struct TrainingCostOptions {
  std::string alpha;
  std::string beta;
  std::string gamma;
  bool fitted = false;
};

void add_training_cost_options(CLI::App* command, TrainingCostOptions& options);

// The costs of a ring (MG-WFBP, Table II). Of a cluster: between two neighbours an all-reduce is
// twice a message, which takes its latency and what either server has to do with it, two
// overheads; the rate is that of the slowest level, and nothing is said of additions.
//
// Throws a UsageError for a text that cannot be read, and a SetupError where a cluster is asked for
// and none runs, none was fitted, or its links have no rate.
control::model::NodeCosts training_costs(const TrainingCostOptions& options);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_TRAINING_COSTS_H_
