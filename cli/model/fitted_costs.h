// What `gradcube model fit` makes of its measurements: what a message costs on a cluster.
#ifndef GRADCUBE_CLI_MODEL_FITTED_COSTS_H_
#define GRADCUBE_CLI_MODEL_FITTED_COSTS_H_

#include <span>
#include <string>
#include <vector>

#include "control/model/all_reduce_cost.h"
#include "control/plan/auto_plans.h"
#include "control/plan/base/topology.h"
#include "control/plan/plan_cost.h"

namespace gradcube::cli {

// What an all-reduce of next to nothing on all servers takes by a plan.
struct TimedPlan {
  control::PlanCost cost;
  double seconds = 0;
};

// The line of a level, and how far what was measured lies off it (control::model::misfit()).
struct LevelLine {
  control::model::AllReduceCost line;
  double misfit = 0;
};

// From the lines that all-reduces of two neighbours take, one for each level, and from small
// all-reduces of all servers by several plans. What these take is a line of how many messages wait
// for each other by the plan and of how many a core handles, and something that is the same for all
// plans: submissions, and the trainers' waking. The latencies of the levels are to each other as
// the a of their lines. Where the plans do not tell the two apart, as on two servers, all is
// latency. In whole 100 ns.
control::MessageCosts message_costs(std::span<const LevelLine> levels, unsigned servers_per_core,
                                    std::span<const TimedPlan> plans);

// Whether such plans tell what a core takes for a message from what the way takes, and from what is
// the same for all plans: three of them do, if their counts lie on no line.
bool tell_costs_apart(const control::Topology& topology, std::span<const TimedPlan> plans);

// How a trainer asks for auto with them. Where the levels' latencies are too many for a name, it
// has one for all: the greatest.
std::string fitted_name(control::MessageCosts costs);

// What speaks against the fit: a `b` that is far from the level's rate, or none; no latency; times
// that lie on no line; a share of segments that were sent again meanwhile, 0 to 1; or no cost on a
// core that servers share, if the plans would show one. Empty if nothing does. `levels` from level
// 0 up.
std::vector<std::string> doubts_of(std::span<const LevelLine> levels,
                                   const control::Topology& topology,
                                   const control::MessageCosts& costs, double resent,
                                   bool plans_show_overhead);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_FITTED_COSTS_H_
