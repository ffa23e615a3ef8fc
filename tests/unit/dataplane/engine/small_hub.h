// A hub of a server of star:2, as its daemon makes it.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_SMALL_HUB_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_SMALL_HUB_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "control/checkpoint/key_optimizers.h"
#include "control/plan/algorithms.h"
#include "control/plan/base/byte_range.h"
#include "dataplane/engine/hub/server_hub.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

inline constexpr double kHubRate = 0.5;  // the optimizer's

// Of keys "a", of 64 float32, and "b", of 40 bfloat16.
inline std::vector<control::HubKey> small_keys() {
  return {{"a", 64, aggregation::DataType::float32}, {"b", 40, aggregation::DataType::bfloat16}};
}

inline ServerHubShape small_hub_shape(unsigned trainers = 1, control::Rank rank = 0) {
  ServerHubShape shape;
  shape.choice = std::make_shared<control::PlanChoice>(std::make_shared<control::Plan>(
      control::make_plan("bml", control::parse_topology("star:2", "test"), "test")));
  shape.plan = &shape.choice->plan(0);
  shape.kernels = &aggregation::select_kernels(512);
  shape.segment_bytes = control::kUnitBytes;
  shape.block_bytes = UINT32_MAX;
  shape.trainers = trainers;
  shape.all_trainers = 2 * trainers;
  shape.rank = rank;
  return shape;
}

inline std::shared_ptr<ServerHub> small_hub(std::uint32_t number = 1, unsigned trainers = 1,
                                            control::Rank rank = 0,
                                            std::vector<bcube::ServerId> aggregators = {},
                                            bool accumulates = false) {
  ServerHubShape shape = small_hub_shape(trainers, rank);
  shape.aggregators = std::move(aggregators);
  shape.accumulates = accumulates;
  auto model = std::make_shared<control::hub::HubModel>(
      control::ordered_keys(small_keys(), "test"),
      control::parse_key_optimizers("sgd:lr=0.5", small_keys(), "test"), *shape.plan, shape.engines,
      32768, "test");
  return std::make_shared<ServerHub>(number, std::move(model), shape);
}

// A trainer's push of a key of it, out of the heap's beginning.
inline shared::Submission small_push(std::uint64_t request, std::uint32_t key = 0,
                                     shared::PushKind kind = shared::PushKind::gradients) {
  const control::HubKey of = small_keys()[key];
  shared::Submission entry{};
  entry.request = request;
  entry.type = static_cast<std::uint8_t>(shared::SubmissionType::push);
  entry.offset = shared::kHeapOffset;
  entry.count = of.elements;
  entry.dtype = static_cast<std::uint8_t>(of.type);
  entry.push.kind = static_cast<std::uint8_t>(kind);
  entry.push.key = key;
  entry.push.hub = 1;
  if (kind == shared::PushKind::gradients) entry.push.rate = shared::kOwnRate;
  return entry;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_SMALL_HUB_H_
