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
//
// Without patterns all stages are rings on a torus, where Eq. 3 does not hold: half of a ring is
// not one hop away.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {
namespace {

enum class BlueConnectPattern { ring, halving_doubling };

// Both lists have the outermost stage first.
struct BlueConnectStages {
  // Empty: the number of digits that the servers have at each level of the topology, and the stages
  // run from the fastest level to the slowest.
  std::vector<unsigned> factors;
  // One for each factor or one for all; empty: the cheaper.
  std::vector<BlueConnectPattern> patterns;
};

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

std::vector<unsigned> factors_of(const std::string& refusal, const Placement& placement,
                                 const std::vector<unsigned>& wanted) {
  std::vector<unsigned> of_levels;
  for (const GridDimension& level : placement.dimensions()) of_levels.push_back(level.radix);
  std::reverse(of_levels.begin(), of_levels.end());
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
  double bit_seconds = 0;  // of its level: 0 where that is not limited, or it spans several
};

// The innermost first; where they are the levels, the fastest. Throws for one that cannot run.
std::vector<FactorStage> stages_of(const std::string& refusal, const Topology& topology,
                                   const Placement& placement, const BlueConnectStages& wanted) {
  const std::vector<unsigned> factors = factors_of(refusal, placement, wanted.factors);
  const std::vector<BlueConnectPattern> patterns =
      patterns_of(refusal, factors, topology.space().cabled(), wanted.patterns);
  std::vector<FactorStage> stages;
  std::uint32_t stride = 1;
  for (std::size_t i = factors.size(); i-- > 0; stride *= factors[i]) {
    require_stage(refusal, factors[i], patterns[i]);
    FactorStage& stage = stages.emplace_back(FactorStage{factors[i], stride, patterns[i]});
    if (!wanted.factors.empty()) continue;
    const double rate = topology.share_bps(placement.dimensions()[stages.size() - 1].level);
    stage.bit_seconds = rate == 0 ? 0.0 : 1.0 / rate;
  }
  std::stable_sort(stages.begin(), stages.end(), [](const FactorStage& a, const FactorStage& b) {
    return a.bit_seconds < b.bit_seconds;
  });
  return stages;
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

// Of what stands behind the colon of a name: factors, patterns or both, for example "4x3x2",
// "ring", "4x3,halving_doubling,ring".
BlueConnectStages read_stages(std::string_view parameters, const std::string& what) {
  BlueConnectStages stages;
  std::vector<std::string_view> items = split(parameters, ',');
  if (!items.front().empty() && items.front().front() >= '0' && items.front().front() <= '9') {
    stages.factors = read_factors(items.front(), what);
    items.erase(items.begin());
  }
  for (const std::string_view item : items) stages.patterns.push_back(read_pattern(item, what));
  return stages;
}

}  // namespace

Plan make_blueconnect_plan(const std::string& name, const Topology& topology,
                           const Placement& placement, std::optional<std::string_view> parameters,
                           const std::string& what) {
  const BlueConnectStages wanted =
      parameters ? read_stages(*parameters, what) : BlueConnectStages{};
  require_company(name, placement);
  require_grid(name, topology, placement);
  const std::string refusal = fmt::format("algorithm {} on {} servers", name, placement.ranks());
  const PlanThread thread{1, steps_of(stages_of(refusal, topology, placement, wanted))};
  // Among neighbours each port sends to one other and receives from one.
  Plan plan(name, topology, placement, {thread});
  if (joins_neighbours_alone(plan)) return plan;
  return Plan(name, topology, placement, {thread}, LinkUse::shared);
}

}  // namespace gradcube::control
