#include "control/plan/algorithms/blueconnect.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {
namespace {

constexpr std::string_view kRing = "ring";
constexpr std::string_view kHalvingDoubling = "halving_doubling";

std::vector<unsigned> read_factors(std::string_view product, const std::string& what) {
  std::vector<unsigned> factors;
  for (const std::string_view item : split(product, 'x')) {
    unsigned factor = 0;
    const char* const end = item.data() + item.size();
    const auto result = std::from_chars(item.data(), end, factor);
    if (result.ec != std::errc() || result.ptr != end || factor < 2) {
      throw UsageError(
          fmt::format("{}: {} is no factor; expected whole numbers from 2 with an x "
                      "between them, for example 4x3x2",
                      what, quoted(item)));
    }
    factors.push_back(factor);
  }
  return factors;
}

BlueConnectPattern read_pattern(std::string_view name, const std::string& what) {
  if (name == kRing) return BlueConnectPattern::ring;
  if (name == kHalvingDoubling) return BlueConnectPattern::halving_doubling;
  throw UsageError(fmt::format("{}: no stage runs the pattern {}; expected {} or {}", what,
                               quoted(name), kRing, kHalvingDoubling));
}

std::string product_text(const std::vector<unsigned>& factors) {
  return fmt::format("{}", fmt::join(factors, "x"));
}

// Those of the levels, the outermost first.
std::vector<unsigned> factors_of_levels(const Placement& placement) {
  std::vector<unsigned> factors;
  for (const GridDimension& level : placement.dimensions()) factors.push_back(level.radix);
  std::reverse(factors.begin(), factors.end());
  return factors;
}

std::vector<unsigned> factors_of(const std::string& refusal, const Placement& placement,
                                 const std::vector<unsigned>& wanted) {
  const std::vector<unsigned> of_levels = factors_of_levels(placement);
  if (wanted.empty()) return of_levels;
  std::uint64_t product = 1;
  for (const unsigned factor : wanted) {
    product *= factor;
    if (product > placement.ranks()) break;  // before it overflows
  }
  if (product != placement.ranks()) {
    throw UsageError(fmt::format(
        "{}: the product of {} is not {}; expected factors whose product it is, for example {}",
        refusal, product_text(wanted), placement.ranks(), product_text(of_levels)));
  }
  return wanted;
}

std::vector<BlueConnectPattern> patterns_of(const std::string& refusal,
                                            const std::vector<unsigned>& factors, bool cabled,
                                            std::vector<BlueConnectPattern> wanted) {
  if (wanted.empty()) {
    for (const unsigned factor : factors) {
      wanted.push_back(!cabled && std::has_single_bit(factor) ? BlueConnectPattern::halving_doubling
                                                              : BlueConnectPattern::ring);
    }
  }
  if (wanted.size() == 1) wanted.resize(factors.size(), wanted.front());
  if (wanted.size() != factors.size()) {
    throw UsageError(
        fmt::format("{}: it lists {} patterns; expected 1 for all stages, or {}: one for each "
                    "factor of {}",
                    refusal, wanted.size(), factors.size(), product_text(factors)));
  }
  return wanted;
}

void require_stage(const std::string& refusal, unsigned factor, BlueConnectPattern pattern) {
  if (pattern == BlueConnectPattern::halving_doubling && !std::has_single_bit(factor)) {
    throw UsageError(fmt::format(
        "{}: {} servers cannot be halved down to one; expected a power of two, or the pattern {}",
        refusal, factor, kRing));
  }
  if (pattern == BlueConnectPattern::ring && factor > kMaxRunnableRadix) {
    throw UsageError(
        fmt::format("{}: one ring has at most {} servers, not {}; expected smaller "
                    "factors",
                    refusal, kMaxRunnableRadix, factor));
  }
}

struct FactorStage {
  unsigned factor = 0;
  std::uint32_t stride = 0;  // from a rank of it to the next
  BlueConnectPattern pattern = BlueConnectPattern::ring;
};

// The innermost first. Throws for one that cannot run.
std::vector<FactorStage> stages_of(const std::string& refusal, const std::vector<unsigned>& factors,
                                   const std::vector<BlueConnectPattern>& patterns) {
  std::vector<FactorStage> stages;
  std::uint32_t stride = 1;
  for (std::size_t i = factors.size(); i-- > 0; stride *= factors[i]) {
    require_stage(refusal, factors[i], patterns[i]);
    stages.push_back({factors[i], stride, patterns[i]});
  }
  return stages;
}

// Of stages that are the levels of the servers, by ascending level. Equally fast ones keep their
// order.
std::vector<FactorStage> fastest_first(const std::vector<FactorStage>& stages,
                                       const Topology& topology, const Placement& placement) {
  const auto bit_seconds = [&](std::size_t i) {
    const double rate = topology.share_bps(placement.dimensions()[i].level);
    return rate == 0 ? 0.0 : 1.0 / rate;
  };
  std::vector<std::size_t> order(stages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bit_seconds(a) < bit_seconds(b); });
  std::vector<FactorStage> sorted;
  for (const std::size_t i : order) sorted.push_back(stages[i]);
  return sorted;
}

std::vector<PlanStep> steps_of(const std::vector<FactorStage>& stages) {
  std::vector<PlanStep> steps;
  for (const FactorStage& stage : stages) {  // Algorithm 1, lines 7-11
    if (stage.pattern == BlueConnectPattern::ring) {
      steps.push_back({stage.factor, stage.stride, Pattern::ring});
      continue;
    }
    for (unsigned half = stage.factor / 2; half != 0; half /= 2) {
      steps.push_back({2, stage.stride * half, Pattern::mesh});
    }
  }
  return steps;
}

bool joins_neighbours_alone(const Plan& plan) {
  const bool cabled = plan.space().cabled();
  if (cabled && !are_whole_rings(plan.topology(), plan.placement())) return false;
  for (unsigned w = 0; w < plan.steps(); ++w) {
    const std::optional<unsigned> level = plan.level(0, w);
    if (!level) return false;
    // A part of a ring ends where no cable leads back to its begin.
    if (cabled && (plan.radix(0, w) != plan.space().radix(*level) || !plan.step(0, w).is_ring())) {
      return false;
    }
  }
  return true;
}

}  // namespace

BlueConnectStages read_blueconnect_stages(std::string_view parameters, const std::string& what) {
  BlueConnectStages stages;
  std::vector<std::string_view> items = split(parameters, ',');
  if (!items.front().empty() && items.front().front() >= '0' && items.front().front() <= '9') {
    stages.factors = read_factors(items.front(), what);
    items.erase(items.begin());
  }
  for (const std::string_view item : items) stages.patterns.push_back(read_pattern(item, what));
  return stages;
}

Plan make_blueconnect_plan(const std::string& name, const Topology& topology,
                           const Placement& placement, const BlueConnectStages& stages) {
  require_company(name, placement);
  require_grid(name, topology, placement);
  const std::string refusal = fmt::format("algorithm {} on {} servers", name, placement.ranks());
  const std::vector<unsigned> factors = factors_of(refusal, placement, stages.factors);
  const std::vector<BlueConnectPattern> patterns =
      patterns_of(refusal, factors, topology.space().cabled(), stages.patterns);
  std::vector<FactorStage> of_plan = stages_of(refusal, factors, patterns);
  if (stages.factors.empty()) of_plan = fastest_first(of_plan, topology, placement);
  const PlanThread thread{1, steps_of(of_plan)};
  // Among neighbours each port sends to one other and receives from one.
  Plan plan(name, topology, placement, {thread});
  if (joins_neighbours_alone(plan)) return plan;
  return Plan(name, topology, placement, {thread}, LinkUse::shared);
}

}  // namespace gradcube::control
