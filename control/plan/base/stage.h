// The two stages of a collective. The aggregation stage is the reduce-scatter of MPI and NCCL, the
// broadcast stage their all-gather.
#ifndef GRADCUBE_CONTROL_PLAN_BASE_STAGE_H_
#define GRADCUBE_CONTROL_PLAN_BASE_STAGE_H_

#include <string_view>

namespace gradcube::control {

enum class Stage { aggregation, broadcast };
inline constexpr unsigned kStages = 2;

constexpr std::string_view stage_name(Stage stage) {
  return stage == Stage::aggregation ? "aggregation" : "broadcast";
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_STAGE_H_
