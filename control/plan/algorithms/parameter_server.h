// The parameter server: one server receives the gradients of all others, adds them and sends all of
// them the sum (PHub, section 2; BML, section 2.1). There is one thread and one step of the pattern
// root; of a root with several ports on the switch a thread for each, whose messages come and go by
// it (PHub, section 3.2.4: Key by Interface). On BCube most servers are several hops from it, and
// relays lead there.
//
// It is what the papers compare with, where its one link limits all. In mesh every server is the
// parameter server of one N-th of the gradient.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_PARAMETER_SERVER_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_PARAMETER_SERVER_H_

#include <string>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// `name` is the plan's, as it was asked for: "ps:2,1". Its contribution is added first, and then
// those of the others by ascending rank. Needs 2 to 256 ranks, one of them at
// `server`: throws a UsageError else.
Plan make_parameter_server_plan(const std::string& name, const Topology& topology,
                                const Placement& placement, ServerId server);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_PARAMETER_SERVER_H_
