// The parameter server: one server receives the gradients of all others, adds them and sends all of
// them the sum (PHub, section 2; BML, section 2.1). There is one thread and one step of the pattern
// root; of a root with several ports on the switch a thread for each, whose messages come and go by
// it (PHub, section 3.2.4: Key by Interface). On BCube most servers are several hops from it, and
// relays lead there.
//
// It is what the papers compare with, where its one link limits all. In mesh every server is the
// parameter server of one N-th of the gradient.
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {
namespace {

// Digit 0 is the root's; the others follow by ascending rank.
std::shared_ptr<const DigitOrder> beginning_with(Rank root, std::uint32_t ranks) {
  auto order = std::make_shared<DigitOrder>();
  order->set(0, root);
  unsigned digit = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (rank != root) order->set(++digit, rank);
  }
  return order;
}

}  // namespace

Plan make_parameter_server_plan(const std::string& name, const Topology& topology,
                                const Placement& placement, ServerId server) {
  require_company(name, placement);
  const std::uint32_t ranks = placement.ranks();
  if (ranks > kMaxRunnableRadix) {
    throw UsageError(
        fmt::format("algorithm {} on {} servers: one parameter server serves at most {}; expected "
                    "fewer servers, or hips:root, which has one for each group",
                    name, ranks, kMaxRunnableRadix));
  }
  const std::optional<Rank> root = placement.rank(server);
  if (!root) {
    throw UsageError(fmt::format(
        "algorithm {}: {} is none of the job's servers; expected one of "
        "them, for example ps alone, which takes the first, or the one whose ports have most",
        name, topology.space().text(server)));
  }
  const bool one_hop = placement.dimensions().size() == 1 && !topology.space().cabled();
  PlanStep step{ranks, 1, Pattern::root};
  if (*root != 0) step.order = beginning_with(*root, ranks);
  const unsigned ports = topology.space().rails() > 1 ? topology.space().ports(server) : 1;
  std::vector<PlanThread> threads;
  for (unsigned port = 0; port < ports; ++port) threads.push_back({1, {step}, port});
  return Plan(name, topology, placement, std::move(threads),
              one_hop && ports == 1 ? LinkUse::exclusive : LinkUse::shared);
}

}  // namespace gradcube::control
