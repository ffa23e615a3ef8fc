// In which order a server's ports serve the steps of a plan, within one collective.
//
//   - Aggregation steps go before results. With results first, the last segments would cross an
//     idle network one step at a time.
//   - Steps over different levels go in the order of the plan: with the first step before all
//     others every link still has work at the end.
//   - Consecutive steps over the same port, those of halving and doubling and all on a tree, go in
//     turn. They share the links, and one passes on what the other brings: one after the other, the
//     levels behind them, or the uplinks of the tree, would be idle until the first had ended.
//   - Results go in turn. With the pattern root on a server's only port they go in turn with the
//     steps, too: the servers of a rack have all contributions ready at once, and as long as they
//     fill their root's port, the uplinks would wait for what other roots could send it.
//
// A pure function; any thread.
#ifndef GRADCUBE_CONTROL_PLAN_SERVICE_ORDER_H_
#define GRADCUBE_CONTROL_PLAN_SERVICE_ORDER_H_

#include "control/plan/base/plan.h"
#include "control/plan/base/stage.h"

namespace gradcube::control {

// The place of a thread's step, the lowest first. Steps with the same place go in turn. Those of
// the aggregation stage are below `steps`, the most that a plan of the lane has.
unsigned service_place(const Plan& plan, unsigned thread, Stage stage, unsigned step,
                       unsigned steps);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_SERVICE_ORDER_H_
