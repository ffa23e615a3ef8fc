#include "control/plan/requirements.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::control {

void require_switches(std::string_view algorithm, const Topology& topology, std::string_view why) {
  if (std::all_of(topology.dimensions().begin(), topology.dimensions().end(),
                  [](const Dimension& d) { return d.link == Link::switched; })) {
    return;
  }
  throw UsageError(
      fmt::format("algorithm {} on topology {}: {}, and here only adjacent servers are joined; "
                  "expected bcube:n,k or star:N, for example bcube:3,2",
                  algorithm, topology.spec(), why));
}

void require_company(std::string_view algorithm, const Placement& placement) {
  if (placement.ranks() > 1) return;
  throw UsageError(
      fmt::format("algorithm {}: one server alone has nobody to exchange with; expected two "
                  "servers or more",
                  algorithm));
}

}  // namespace gradcube::control
