#include "cli/measure/perf_collective.h"

#include <fmt/format.h>
#include <vector>

#include "control/plan/plan_cost.h"

namespace gradcube::cli {

using control::CollectiveKind;

std::string with_article(CollectiveKind kind) {
  const std::string_view name = control::collective_kind_name(kind);
  return fmt::format("{} {}", name.starts_with('a') ? "an" : "a", name);
}

double bus_factor(CollectiveKind kind, std::uint32_t ranks) {
  const double n = ranks;
  if (control::is_rank_ordered(kind)) return (n - 1) / n;
  return control::has_root(kind) ? 1 : 2 * (n - 1) / n;
}

namespace {

// That all of a step's frames leave through: where cables join the servers, in a ring of adjacent
// ones alone.
std::optional<unsigned> port_of(const control::Plan& plan, const control::PlanStep& step,
                                unsigned level) {
  const bcube::AddressSpace& space = plan.space();
  if (!space.cabled()) return level;
  if (!step.is_ring() || step.radix != space.radix(level)) return std::nullopt;
  const auto server = [&](unsigned digit) {
    return plan.placement().server(step.with_digit(0, digit));
  };
  return space.port_of(server(0), level, space.digit(server(1), level));
}

// On a tree messages of one level pass links of those below, and where servers have ports of their
// own, not all links of a level are alike: such plans are walked.
BusiestLink busiest_of_all(const control::Plan& plan, unsigned stages) {
  const control::PlanCost cost(plan);
  const auto seconds = [&](unsigned level) {
    const std::uint64_t rate = plan.topology().dimensions()[level].rate_bps;
    return rate == 0 ? 0 : cost.share(level) / static_cast<double>(rate);
  };
  unsigned busiest = 0;
  for (unsigned level = 1; level < plan.topology().link_levels(); ++level) {
    if (seconds(level) > seconds(busiest)) busiest = level;
  }
  return {busiest, cost.share(busiest) * stages / 2};
}

}  // namespace

std::optional<BusiestLink> busiest_link(const control::Plan& plan, CollectiveKind kind) {
  if (kind == CollectiveKind::barrier) return std::nullopt;
  if (plan.has_root_step() && control::has_root(kind)) return std::nullopt;
  // A chunk by itself passes in one stage alone.
  const unsigned stages = control::is_rank_ordered(kind) && !plan.has_root_step() ? 1 : 2;
  if (plan.topology().is_tree() || plan.topology().has_own_ports()) {
    return busiest_of_all(plan, stages);
  }
  // In all stages one way, in pieces times the weight of their thread: a step of a mesh or a ring
  // moves the same both ways, the root of one receives in the one stage and sends in the other, and
  // where steps double there is one stage.
  std::vector<std::uint64_t> carried(plan.topology().ports());
  std::uint64_t weights = 0;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    const std::uint64_t weight = plan.thread(thread).weight;
    weights += weight;
    std::uint64_t pieces = plan.ranks();  // that a rank still works on
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      const auto level = plan.level(thread, w);
      if (!level) return std::nullopt;
      const control::PlanStep& step = plan.step(thread, w);
      const auto port = port_of(plan, step, *level);
      if (!port) return std::nullopt;
      pieces /= step.parts();
      const unsigned times = step.is_root() || step.doubles() ? 1 : stages;
      carried[*port] += times * weight * pieces * (step.radix - 1);
    }
  }
  const auto seconds = [&](unsigned port) {
    const unsigned level = plan.space().level_of_port(port);
    const std::uint64_t rate = plan.topology().dimensions()[level].rate_bps;
    return static_cast<double>(carried[port]) / static_cast<double>(rate == 0 ? 1 : rate);
  };
  unsigned port = 0;
  for (unsigned other = 1; other < carried.size(); ++other) {
    if (seconds(other) > seconds(port)) port = other;
  }
  const double share =
      static_cast<double>(carried[port]) / (static_cast<double>(weights) * plan.ranks());
  return BusiestLink{plan.space().level_of_port(port), share};
}

}  // namespace gradcube::cli
