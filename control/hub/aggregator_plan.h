// How a hub is exchanged whose sums are made at servers that have none of the job's trainers:
// PHub's PBox (section 3.3), a root beside the workers, or several that share the keys.
//
// Each aggregator is the root of threads of its own, and chunks are divided among threads by LPT
// (binding.h). So each has whole chunks, an equal part by bytes up to one chunk: nothing that is
// done for a chunk has to know of the other aggregators. One with several ports has as many parts.
#ifndef GRADCUBE_CONTROL_HUB_AGGREGATOR_PLAN_H_
#define GRADCUBE_CONTROL_HUB_AGGREGATOR_PLAN_H_

#include <span>
#include <string_view>

#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"
#include "control/plan/plan_choice.h"

namespace gradcube::control::hub {

// The plan of `ps` over the servers of `members` and the aggregators, which are its roots. The
// placement has one rank for each of them. Throws a UsageError that begins with `where` for a
// server that there is not, or one of the members, for one that is named twice or too far from a
// member, and for more than a step of `ps` or its threads have room for.
PlanChoice aggregated(const Topology& topology, const Placement& members,
                      std::span<const ServerId> aggregators, std::string_view where);

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_AGGREGATOR_PLAN_H_
