#include "cli/perf_collective.h"

#include <fmt/format.h>
#include <vector>

namespace gradcube::cli {

using control::CollectiveKind;

std::string_view perf_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "allreduce";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_gather:
      return "allgather";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::barrier:
      break;
  }
  return "barrier";
}

std::string with_article(CollectiveKind kind) {
  const std::string_view name = control::collective_kind_name(kind);
  return fmt::format("{} {}", name.starts_with('a') ? "an" : "a", name);
}

double bus_factor(CollectiveKind kind, std::uint32_t ranks) {
  const double n = ranks;
  if (control::is_rank_ordered(kind)) return (n - 1) / n;
  return control::has_root(kind) ? 1 : 2 * (n - 1) / n;
}

std::optional<BusiestLink> busiest_link(const control::Plan& plan, CollectiveKind kind) {
  if (kind == CollectiveKind::barrier) return std::nullopt;
  if (plan.has_root_step() && control::has_root(kind)) return std::nullopt;
  // A chunk by itself passes in one stage alone.
  const unsigned stages = control::is_rank_ordered(kind) && !plan.has_root_step() ? 1 : 2;
  // In all stages one way, in pieces times the weight of their thread: a step of a mesh or a ring
  // moves the same both ways, and the root of one receives in the one stage and sends in the other.
  std::vector<std::uint64_t> carried(plan.topology().levels());
  std::uint64_t weights = 0;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    const std::uint64_t weight = plan.thread(thread).weight;
    weights += weight;
    std::uint64_t pieces = plan.ranks();  // that a rank still works on
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      const auto level = plan.level(thread, w);
      if (!level) return std::nullopt;
      const control::PlanStep& step = plan.step(thread, w);
      pieces /= step.parts();
      carried[*level] += (step.is_root() ? 1 : stages) * weight * pieces * (step.radix - 1);
    }
  }
  const auto seconds = [&](unsigned level) {
    const std::uint64_t rate = plan.topology().dimensions()[level].rate_bps;
    return static_cast<double>(carried[level]) / static_cast<double>(rate == 0 ? 1 : rate);
  };
  BusiestLink busiest;
  for (unsigned level = 1; level < carried.size(); ++level) {
    if (seconds(level) > seconds(busiest.level)) busiest.level = level;
  }
  busiest.share =
      static_cast<double>(carried[busiest.level]) / (static_cast<double>(weights) * plan.ranks());
  return busiest;
}

}  // namespace gradcube::cli
