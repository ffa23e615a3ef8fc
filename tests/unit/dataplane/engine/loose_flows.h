// Flows that no plan made and no engine sends on, for tests of what flows stand in: rotations,
// schedulers and tables.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_LOOSE_FLOWS_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_LOOSE_FLOWS_H_

#include <deque>
#include <memory>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/plan_executor.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {

// A job, and flows that belong to it; their addresses do not change.
class LooseFlows {
 public:
  explicit LooseFlows(protocol::JobId id = 1) : job_(id, *session_, {}, 1, true, {16, {}}) {}

  EngineJob& job() { return job_; }
  Flow& add(bcube::ServerId peer = 1) {
    FlowKey key;
    key.peer = peer;
    return flows_.emplace_back(key, job_, executor_, FlowSettings{}, 8);
  }

 private:
  control::PlanChoice choice_{std::make_shared<const control::Plan>(bml_plan("star:2"))};
  TestSession session_{1};
  EngineJob job_;
  PlanExecutor executor_{
      {choice_, 0, 0, aggregation::select_kernels(512), control::kUnitBytes, UINT32_MAX, 16, {}},
      0,
      0,
      job_};
  std::deque<Flow> flows_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_LOOSE_FLOWS_H_
