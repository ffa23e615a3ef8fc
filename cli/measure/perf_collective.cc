#include "cli/measure/perf_collective.h"

#include <fmt/format.h>

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

// Whether servers pass on what a step sends: they may spread it over several paths. On cables a
// ring of adjacent servers alone needs no relay.
bool is_relayed(const control::Plan& plan, unsigned thread, unsigned w) {
  const auto level = plan.level(thread, w);
  if (!level) return true;
  const control::PlanStep& step = plan.step(thread, w);
  return plan.space().cabled() && !(step.is_ring() && step.radix == plan.space().radix(*level));
}

bool has_relays(const control::Plan& plan) {
  // On a tree switches pass on what goes over several levels.
  if (plan.topology().is_tree() || plan.topology().has_own_ports()) return false;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      if (is_relayed(plan, thread, w)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<BusiestLink> busiest_link(const control::Plan& plan, CollectiveKind kind) {
  if (kind == CollectiveKind::barrier || has_relays(plan)) return std::nullopt;
  if (plan.has_root_step() && control::has_root(kind)) return std::nullopt;
  const control::PlanCost cost(plan);
  const auto seconds = [&](unsigned level) {
    const std::uint64_t rate = plan.topology().dimensions()[level].rate_bps;
    if (rate != 0) return cost.share(level) / static_cast<double>(rate);
    return plan.topology().is_tree() ? 0 : cost.share(level);
  };
  unsigned busiest = 0;
  for (unsigned level = 1; level < plan.topology().link_levels(); ++level) {
    if (seconds(level) > seconds(busiest)) busiest = level;
  }
  // A chunk by itself passes in one stage alone.
  const bool one_stage = control::is_rank_ordered(kind) && !plan.has_root_step();
  return BusiestLink{busiest, cost.share(busiest) / (one_stage ? 2 : 1)};
}

}  // namespace gradcube::cli
