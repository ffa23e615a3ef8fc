// What the kinds of collective mean to `gradcube perf`: their names, and what its figures are
// derived from.
#ifndef GRADCUBE_CLI_MEASURE_PERF_COLLECTIVE_H_
#define GRADCUBE_CLI_MEASURE_PERF_COLLECTIVE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/plan/base/plan.h"
#include "control/plan/collective_kind.h"

namespace gradcube::cli {

// As C spells it: "allreduce", "reduce_scatter".
constexpr std::string_view perf_name(control::CollectiveKind kind) {
  return control::names_of(kind).call;
}

// "an all-reduce", "a broadcast".
std::string with_article(control::CollectiveKind kind);

// Whether an operation combines elements: in a barrier there are none.
constexpr bool takes_operation(control::CollectiveKind kind) {
  return control::reduces(kind) && kind != control::CollectiveKind::barrier;
}

// busbw by algbw, as in nccl-tests.
double bus_factor(control::CollectiveKind kind, std::uint32_t ranks);

// The link of a plan that takes longest for what it carries in one direction, on a tree a port or
// an uplink: at the rates of the plan's topology, or at equal ones where these are not limited.
struct BusiestLink {
  unsigned level = 0;  // of links
  double share = 0;    // of the buffer; it may be more than 1
};
// All ports of a root are busy in both stages: of a broadcast its outgoing ones, of a reduce its
// incoming ones. Nothing for a barrier, for a plan with a step over several levels of switches, and
// for a kind with a root on a plan with a step of the pattern root. In a step a mesh and a ring
// load a rank's port alike.
std::optional<BusiestLink> busiest_link(const control::Plan& plan, control::CollectiveKind kind);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_PERF_COLLECTIVE_H_
