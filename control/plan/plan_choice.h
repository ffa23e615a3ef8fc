// The plans that a lane may run, and which of them it takes for a collective.
//
// The algorithm `auto` chooses the plan with the least modelled time (plan_cost.h) for the kind and
// the size of each collective. All servers have to choose alike, so the choice is a function of
// what they agree on: the topology with its rates, the members, and the costs of a message, which
// the algorithm's name carries. It does not depend on what happens.
//
// Times are compared once, when the choice is made, for one size of each CLASS: sizes that have the
// same number of binary digits and the same two digits behind the first, so the sizes of a class
// differ by less than a quarter. To choose is then to look into a table. A plan takes the place of
// the first candidate, the cluster's default algorithm, only where it takes at least 3 % less.
//
// Every plan that is chosen for a class costs flows at each server, so there are at most
// kMostChosen: those that win most classes, and the first. One whose steps double has a few flows
// of one thread, and a place beside them if it wins any class.
//
// Any other algorithm is a choice of one plan, but for a plan whose steps double (Plan::doubles()).
// This runs short all-reduces and barriers, and another one beside it the rest.
//
// Immutable after construction; any thread may read
// it, and nothing allocates then.
#ifndef GRADCUBE_CONTROL_PLAN_PLAN_CHOICE_H_
#define GRADCUBE_CONTROL_PLAN_PLAN_CHOICE_H_

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/plan.h"
#include "control/plan/plan_cost.h"

namespace gradcube::control {

// A plan whose steps double runs all-reduces of fewer bytes. The cost of a plan is no bound: it
// counts messages and what links carry, and here a core also copies all bytes and adds them at each
// step. So the bound is a stated one. Up to it such a plan was measured to be faster than `bml`
// where links have no rate (docs/performance.md), and each executor has a buffer of this size for
// each step of each collective in flight. Where frames are short it is fewer bytes: in k steps such
// a plan sends fewer segments than `bml` while the buffer takes at most 2k - 1 frames.
inline constexpr std::uint64_t kDoublingBelow = 10 * 1024;

// Whether the plan can run such a collective, and all of its kind whose sizes are of its class.
bool can_run(const Plan& plan, CollectiveKind kind, std::uint64_t bytes);

class PlanChoice {
 public:
  static constexpr unsigned kMostChosen = 3;

  static constexpr unsigned size_class(std::uint64_t bytes) {
    const auto digits = static_cast<unsigned>(std::bit_width(bytes));
    if (digits < 3) return 4 * digits;
    return 4 * digits + static_cast<unsigned>(bytes >> (digits - 3) & 3U);
  }
  // Where the class begins, and the one before it ends.
  static double bytes_of_class(unsigned size_class);

  // Of one plan, which can run all collectives. Throws std::invalid_argument for another.
  explicit PlanChoice(std::shared_ptr<const Plan> plan);

  // Of two: of the second where it can, else of the first, which can run all.
  PlanChoice(std::shared_ptr<const Plan> of_all, std::shared_ptr<const Plan> preferred);

  // Of those candidates that are the fastest for some kind and size. All have the same ranks, and
  // there is at least one. The first can run all collectives.
  PlanChoice(std::vector<std::shared_ptr<const Plan>> candidates, const CostParameters& parameters);

  unsigned plans() const { return static_cast<unsigned>(plans_.size()); }
  const Plan& plan(unsigned index) const { return *plans_[index]; }
  // The plan that a collective on a buffer of so many bytes runs.
  unsigned chosen(CollectiveKind kind, std::uint64_t bytes) const {
    return table_[row_of(kind)][size_class(bytes)];
  }
  const Plan& plan_of(CollectiveKind kind, std::uint64_t bytes) const {
    return *plans_[chosen(kind, bytes)];
  }

  // The plan of a parameter hub whose model has so many bytes. Its rounds need both stages.
  const Plan& plan_of_hub(std::uint64_t bytes) const {
    return plan_of(CollectiveKind::reduce, bytes);
  }

  // Of all plans together: those of plan i begin at first_thread(i).
  unsigned threads() const { return first_threads_.back(); }
  unsigned first_thread(unsigned index) const { return first_threads_[index]; }
  // Of the thread with this number among all.
  unsigned plan_of_thread(unsigned thread) const;

  // Of all its plans: the most steps, and the same placement.
  unsigned steps() const;
  const Placement& placement() const { return plans_.front()->placement(); }

 private:
  static constexpr unsigned kClasses = 4 * 65;
  // The kinds by what they cost and which plans run them: all-reduces and barriers, the others of
  // whole buffers, and those of chunks.
  static constexpr std::array kKinds = {CollectiveKind::all_reduce, CollectiveKind::reduce,
                                        CollectiveKind::reduce_scatter};
  static constexpr unsigned row_of(CollectiveKind kind) {
    return is_rank_ordered(kind) ? 2 : has_root(kind) ? 1 : 0;
  }
  // Those from here on are run by plans that run all collectives.
  static constexpr std::size_t kRowsOfAll = 1;
  using Table = std::array<std::array<std::uint8_t, kClasses>, kKinds.size()>;

  // Whether the plan can run the kinds of this row, of all sizes of the class.
  static bool runs(const Plan& plan, std::size_t row, unsigned size_class);
  static Table fastest(const std::vector<std::shared_ptr<const Plan>>& candidates,
                       const std::vector<PlanCost>& costs, const std::vector<unsigned>& among,
                       const CostParameters& parameters);
  void number_threads();

  std::vector<std::shared_ptr<const Plan>> plans_;
  std::vector<unsigned> first_threads_;  // [plan]; then of all
  Table table_{};
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PLAN_CHOICE_H_
