// BlueConnect (MLSys 2019, Algorithm 1): N is written as a product of factors p_0, p_1, ..., one
// for each network from the fastest to the slowest, and the gradient is reduce-scattered over p_0
// ranks, then what is left of it over p_1, and so on; the all-gathers go the same way back. There
// is one thread.
//
// Factors that a name lists go from the innermost to the outermost. Where it lists none they are
// the levels at which the servers have several digits, and these go from the fastest to the slowest
// by the rates of the topology, which all servers know. A level without a rate is the fastest;
// equally fast ones go from the lowest up.
//
// Factor 0 is the innermost: its ranks are consecutive, and so are neighbours if it divides the
// number of digits of the lowest level. Factors are written the other way round, the outermost
// first, as the digits of an address are: on bcube:3,2 the factors of blueconnect:3x3 are its
// levels. Where a factor reaches over several levels its ranks are several hops apart, and servers
// between them relay.
//
// Each stage is a ring, or halves and doubles (section 2.2): meshes over digits of radix 2, the
// highest first. The paper takes the cheaper by its Eq. 3, whatever the latency and the rate are:
// both bring the same bytes, and halving takes lg p messages where a ring takes p-1. So a power of
// two is halved and any other factor is a ring, unless patterns are asked for.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_BLUECONNECT_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_BLUECONNECT_H_

#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

enum class BlueConnectPattern { ring, halving_doubling };

// Both lists have the outermost stage first.
struct BlueConnectStages {
  // Empty: the number of digits that the servers have at each level of the topology, and the stages
  // run from the fastest level to the slowest.
  std::vector<unsigned> factors;
  // One for each factor or one for all; empty: the cheaper.
  std::vector<BlueConnectPattern> patterns;
};

// Of what stands behind the colon of a name: factors, patterns or both, for example "4x3x2",
// "ring", "4x3,halving_doubling,ring". Throws a UsageError, which begins with `what`, for anything
// else.
BlueConnectStages read_blueconnect_stages(std::string_view parameters, const std::string& what);

// `name` is the plan's, as it was asked for. Throws a UsageError when the product of the factors is
// not the number of ranks, the patterns are not as many as the factors, a factor to be halved is no
// power of two or a ring has more than kMaxRunnableRadix ranks, and for a single rank. Without
// patterns all stages are rings on a torus, where Eq. 3 does not hold: half of a ring is not one
// hop away.
Plan make_blueconnect_plan(const std::string& name, const Topology& topology,
                           const Placement& placement, const BlueConnectStages& stages);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_BLUECONNECT_H_
