#include "control/plan/plan_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace gradcube::control {
namespace {

// What another plan than the first has to take at most, compared with it.
constexpr double kBetter = 0.97;
// Of a frame, at most, that are headers of a segment to a neighbour.
constexpr double kFrameHeaders = 128;

}  // namespace

bool can_run(const Plan& plan, CollectiveKind kind, std::uint64_t bytes) {
  if (!plan.doubles()) return true;
  if (kind != CollectiveKind::all_reduce && kind != CollectiveKind::barrier) return false;
  const double end = PlanChoice::bytes_of_class(PlanChoice::size_class(bytes) + 1);
  const auto frames = static_cast<double>(2 * plan.thread(0).steps.size() - 1);
  return end <= kDoublingBelow && end - 1 <= frames * (plan.topology().mtu() - kFrameHeaders);
}

PlanChoice::PlanChoice(std::shared_ptr<const Plan> plan) : plans_{std::move(plan)} {
  if (plans_.front()->doubles()) {
    throw std::invalid_argument("a plan whose steps double needs another beside it");
  }
  number_threads();
}

PlanChoice::PlanChoice(std::shared_ptr<const Plan> of_all, std::shared_ptr<const Plan> preferred)
    : PlanChoice(std::move(of_all)) {
  plans_.push_back(std::move(preferred));
  for (std::size_t row = 0; row < table_.size(); ++row) {
    for (unsigned i = 0; i < kClasses; ++i) table_[row][i] = runs(*plans_[1], row, i) ? 1 : 0;
  }
  number_threads();
}

PlanChoice::PlanChoice(std::vector<std::shared_ptr<const Plan>> candidates,
                       const CostParameters& parameters) {
  std::vector<PlanCost> costs;
  for (const auto& plan : candidates) costs.emplace_back(*plan);
  std::vector<unsigned> among(candidates.size());
  std::iota(among.begin(), among.end(), 0U);
  Table table = fastest(candidates, costs, among, parameters);

  std::vector<unsigned> wins(candidates.size());
  for (std::size_t row = kRowsOfAll; row < table.size(); ++row) {
    for (const std::uint8_t winner : table[row]) ++wins[winner];
  }
  std::stable_sort(among.begin() + 1, among.end(),
                   [&](unsigned a, unsigned b) { return wins[a] > wins[b]; });
  among.resize(std::min<std::size_t>(among.size(), kMostChosen));
  std::erase_if(among, [&](unsigned plan) { return plan != 0 && wins[plan] == 0; });
  for (unsigned plan = 0; plan < candidates.size(); ++plan) {
    const bool wins_short_ones =
        std::find(table[0].begin(), table[0].end(), plan) != table[0].end();
    if (candidates[plan]->doubles() && wins_short_ones) among.push_back(plan);
  }

  table = fastest(candidates, costs, among, parameters);
  for (std::size_t kind = 0; kind < table.size(); ++kind) {
    for (std::size_t i = 0; i < kClasses; ++i) {
      const auto found = std::find(among.begin(), among.end(), table[kind][i]);
      table_[kind][i] = static_cast<std::uint8_t>(found - among.begin());
    }
  }
  for (const unsigned plan : among) plans_.push_back(candidates[plan]);
  number_threads();
}

void PlanChoice::number_threads() {
  first_threads_ = {0};
  for (const auto& plan : plans_) {
    first_threads_.push_back(first_threads_.back() + plan->threads());
  }
}

double PlanChoice::bytes_of_class(unsigned size_class) {
  const unsigned digits = size_class / 4;
  if (digits == 0) return 0;
  return std::ldexp(1 + size_class % 4 / 4.0, static_cast<int>(digits) - 1);
}

bool PlanChoice::runs(const Plan& plan, std::size_t row, unsigned size_class) {
  return can_run(plan, kKinds[row], static_cast<std::uint64_t>(bytes_of_class(size_class)));
}

PlanChoice::Table PlanChoice::fastest(const std::vector<std::shared_ptr<const Plan>>& candidates,
                                      const std::vector<PlanCost>& costs,
                                      const std::vector<unsigned>& among,
                                      const CostParameters& parameters) {
  Table table{};
  for (std::size_t kind = 0; kind < table.size(); ++kind) {
    for (unsigned i = 0; i < kClasses; ++i) {
      const auto seconds = [&](unsigned plan) {
        return costs[plan].time(kKinds[kind], bytes_of_class(i), parameters).seconds();
      };
      unsigned best = among.front();
      double least = seconds(best) * kBetter;
      for (const unsigned plan : among) {
        if (plan == among.front() || !runs(*candidates[plan], kind, i)) continue;
        if (seconds(plan) >= least) continue;
        best = plan;
        least = seconds(plan);
      }
      table[kind][i] = static_cast<std::uint8_t>(best);
    }
  }
  return table;
}

unsigned PlanChoice::plan_of_thread(unsigned thread) const {
  unsigned plan = 0;
  while (first_threads_[plan + 1] <= thread) ++plan;
  return plan;
}

unsigned PlanChoice::steps() const {
  unsigned most = 0;
  for (const auto& plan : plans_) most = std::max(most, plan->steps());
  return most;
}

}  // namespace gradcube::control
