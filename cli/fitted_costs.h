// What `gradcube model fit` has found a message to cost on a cluster, kept in the run directory as
// fitted.json:
//
//   {"cluster":"...","overhead_ns":3100,"latency_ns":[41000,43500]}
//
// "cluster" is RunningCluster::key: what was found on another cluster does not count. A file that
// cannot be read or has another form counts as none.
#ifndef GRADCUBE_CLI_FITTED_COSTS_H_
#define GRADCUBE_CLI_FITTED_COSTS_H_

#include <span>
#include <string>
#include <vector>

#include "control/model/mgwfbp_model.h"
#include "control/plan/auto_plans.h"
#include "control/plan/topology.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// From the lines that all-reduces of two neighbours take, one for each level, and from an empty one
// of all servers. Two neighbours send each other two messages, one after the other, and each server
// handles four: a = 2 latency + 4 overhead. All servers handle and await more by the plan, which
// tells the two apart; two servers alone cannot, and the overhead is then none. In whole 100 ns.
control::MessageCosts message_costs(std::span<const control::model::AllReduceCost> lines,
                                    const control::Topology& topology, double seconds_of_all);

// What speaks against the fit: a `b` that is far from the level's rate, no latency, or a share of
// segments that were sent again meanwhile, 0 to 1. Empty if nothing does. `lines` by level.
std::vector<std::string> doubts_of(std::span<const control::model::AllReduceCost> lines,
                                   const control::Topology& topology,
                                   const control::MessageCosts& costs, double resent);

// Throws SetupError when the file cannot be written.
void keep_fitted_costs(const control::RunDirectory& directory, const std::string& cluster,
                       const control::MessageCosts& costs);

// `algorithm`, but where it is `auto` alone, with what was fitted on this cluster, if that was.
std::string with_fitted_costs(const std::string& algorithm, const control::RunDirectory& directory,
                              const std::string& cluster, const control::Topology& topology);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_FITTED_COSTS_H_
