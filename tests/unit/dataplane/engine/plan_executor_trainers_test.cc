// The executor where its server has several trainers.

#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/plan_executor.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"
#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"

namespace gradcube::dataplane {
namespace {

constexpr unsigned kOnEach = 2;
constexpr std::uint64_t kOwnHeap = 1 << 16;
constexpr std::uint64_t kMany = 3ULL * control::kUnitBytes / sizeof(float);
constexpr std::uint32_t kUnit = control::kUnitBytes;

// Thread 0 of server [0] of star:3.
class ExecutorOfTwoTrainers : public testing::Test {
 protected:
  ExecutorOfTwoTrainers()
      : choice_(std::make_shared<const control::Plan>(
            control::make_plan("bml", control::parse_topology("star:3", "test"), "test"))),
        session_(whole_region(kOwnHeap), doorbell(),
                 SessionShape{3 * kOnEach, {choice_.threads()}, false, kOnEach},
                 std::vector<Doorbell*>{}, nullptr, 0),
        job_(1, session_, {}, 1, true),
        executor_({choice_, 0, 0, aggregation::select_kernels(512), kUnit, UINT32_MAX, 16, {}}, 0,
                  0, job_) {
    session_.add(1, whole_region(kOwnHeap), doorbell());
  }
  ~ExecutorOfTwoTrainers() override {
    for (const int end : trainer_ends_) close(end);
  }

  void submit(unsigned local, std::uint64_t count) {
    const SessionRegion& region = session_.region(local);
    shared::Submission& submission = submission_entry(region, 0);
    submission = {};
    submission.request = local + 1;
    submission.offset = shared::kHeapOffset;
    submission.count = count;
    region.header().submission_tail.store(1);
    while (session_.take() == Session::Take::taken) {
    }
  }

  control::PlanChoice choice_;

 private:
  int doorbell() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    trainer_ends_.push_back(ends[1]);
    return ends[0];
  }

  std::vector<int> trainer_ends_;

 protected:
  Session session_;
  EngineJob job_;
  PlanExecutor executor_;
};

TEST_F(ExecutorOfTwoTrainers, TakesNoResultWhereTheyHaveSubmittedDifferentCollectives) {
  submit(0, kMany);
  submit(1, 1);
  ASSERT_TRUE(executor_.begin_published());
  ASSERT_TRUE(executor_.disagreement().has_value());
  EXPECT_EQ(executor_.disagreement()->collective, 1u);
  const control::ThreadSchedule schedule(choice_.plan(0), 0, 0);
  Flow& flow = executor_.flow(protocol::Stage::broadcast, 0, schedule.offset_of_digit(0, 1));
  // A neighbour can send any kind that its header has room for.
  for (unsigned kind = 0; kind <= UINT8_MAX; ++kind) {
    Contribution result;
    result.bytes = kUnit;
    result.signature = {1, kMany, 0, static_cast<std::uint8_t>(kind), 0};
    EXPECT_EQ(executor_.accept(flow, 0, result).refused, DropReason::disagreement) << kind;
  }
}

}  // namespace
}  // namespace gradcube::dataplane
