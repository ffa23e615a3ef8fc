// The ranks that the trainers of a job see, beside those of its plans.
//
// A plan numbers the members by their servers. Trainers may have asked for other ranks: these
// decide whose chunk is where in a rank-ordered collective, and which rank is meant by a root. With
// several trainers on a server all of these are numbers of servers (control/plan/local_stage.h).
//
// A value. Made by the control thread before a job starts; read by the engine's thread.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_RANK_ORDER_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_RANK_ORDER_H_

#include <utility>
#include <vector>

#include "control/plan/base/step_pattern.h"

namespace gradcube::dataplane {

class RankOrder {
 public:
  // The same ranks in both.
  RankOrder() = default;
  // seen[r]: the rank that the trainer with rank r of the plan sees; a permutation.
  explicit RankOrder(std::vector<control::Rank> seen)
      : seen_(std::move(seen)), plan_(seen_.size()) {
    for (control::Rank rank = 0; rank < seen_.size(); ++rank) plan_[seen_[rank]] = rank;
  }

  control::Rank in_plan(control::Rank seen) const { return plan_.empty() ? seen : plan_[seen]; }
  control::Rank as_seen(control::Rank in_plan) const {
    return seen_.empty() ? in_plan : seen_[in_plan];
  }
  // For CollectiveShape.
  const control::Rank* chunk_of_rank() const { return seen_.empty() ? nullptr : seen_.data(); }

 private:
  std::vector<control::Rank> seen_;
  std::vector<control::Rank> plan_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_RANK_ORDER_H_
