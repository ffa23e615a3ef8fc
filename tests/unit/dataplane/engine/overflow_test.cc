// The executor's part in an average of integers that overflows: one thread of server [0] of
// bcube:2,1, its neighbour's contributions made by hand.

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <memory>

#include "control/plan/algorithms.h"
#include "control/plan/base/topology.h"
#include "dataplane/engine/engine_job.h"
#include "dataplane/host/packet_pool.h"
#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using aggregation::Operation;
using protocol::Stage;

constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kCount = 32;  // 16 elements, one segment, for each of the two servers

PacketPoolOptions pool_options() {
  PacketPoolOptions options;
  options.name = "overflow";
  options.count = 63;
  options.cache = 0;
  return options;
}

class ExecutorOverflow : public testing::Test {
 protected:
  ExecutorOverflow()
      : choice_(std::make_shared<const control::Plan>(
            control::make_plan("bml", control::parse_topology("bcube:2,1", "test"), "test"))),
        packets_(pool_options()),
        session_(whole_region(1 << 20), -1, {2, {1}}, {}),
        job_(1, session_, {}, 1, true),
        executor_(
            {choice_, 0, 0, aggregation::select_kernels(512), 1024, UINT32_MAX, 16, FlowSettings{}},
            0, 0, job_) {}

  // The trainer's next all-reduce of int32 elements that all are `value`.
  void submit(std::int32_t value, Operation operation = Operation::average) {
    const std::uint64_t offset = shared::kHeapOffset + submitted_ * 4096;
    shared::Submission& submission = submission_entry(session_.region(), submitted_);
    submission = {};
    submission.request = ++submitted_;
    submission.offset = offset;
    submission.count = kCount;
    submission.dtype = static_cast<std::uint8_t>(DataType::int32);
    submission.collective.op = static_cast<std::uint8_t>(operation);
    for (std::size_t i = 0; i < kCount; ++i) {
      std::memcpy(session_.region().base() + offset + i * 4, &value, 4);
    }
    session_.region().header().submission_tail.store(submitted_);
    ASSERT_EQ(session_.take(), Session::Take::taken);
    executor_.begin_published();
  }
  // The neighbour's contribution to segment `sequence`, 16 elements that all are kMost. Each
  // collective is one segment.
  void contribute(std::uint64_t sequence, Operation operation = Operation::average) {
    theirs_.fill(kMost);
    CollectiveRequest request;
    request.dtype = DataType::int32;
    request.operation = operation;
    request.count = kCount;
    request.number = failed_ + sequence + 1;
    Contribution contribution;
    contribution.packet = packets_.allocate();
    contribution.payload = reinterpret_cast<const std::uint8_t*>(theirs_.data());
    contribution.bytes = sizeof theirs_;
    contribution.signature = signature(request);
    executor_.take(receive_flow(), sequence, contribution, {});
  }
  Flow& receive_flow() { return executor_.flow(Stage::aggregation, 0, 1); }
  std::uint64_t reduced() { return executor_.consumed(receive_flow()); }

  control::PlanChoice choice_;
  PacketPool packets_;
  std::array<std::int32_t, 16> theirs_{};
  Session session_;
  EngineJob job_;
  PlanExecutor executor_;
  std::uint64_t submitted_ = 0;
  std::uint64_t failed_ = 0;
};

TEST_F(ExecutorOverflow, IsToldWithItsCollectiveStepAndElementsAndLeavesTheSegmentUnreduced) {
  submit(-5);
  submit(1);
  contribute(0);
  EXPECT_FALSE(executor_.overflow().has_value());
  EXPECT_EQ(reduced(), 1u);
  contribute(1);
  ASSERT_TRUE(executor_.overflow().has_value());
  EXPECT_EQ(executor_.overflow()->collective, 2u);
  EXPECT_EQ(executor_.overflow()->step, 0u);
  EXPECT_EQ(executor_.overflow()->first_element, 0u);
  EXPECT_EQ(executor_.overflow()->elements, 16u);
  EXPECT_EQ(reduced(), 1u);
  EXPECT_FALSE(executor_.finish_completed(0));
}

TEST_F(ExecutorOverflow, IsToldOfTheFirstCollectiveThatHasOne) {
  submit(kMost);
  submit(kMost);
  contribute(1);
  EXPECT_EQ(executor_.overflow()->collective, 2u);
  contribute(0);
  EXPECT_EQ(executor_.overflow()->collective, 1u);
}

// Its sum has wrapped by then: added to the contribution again it would fit.
TEST_F(ExecutorOverflow, IsNotReducedAgainWhenTheTrainerSubmitsMore) {
  submit(kMost);
  contribute(0);
  ASSERT_TRUE(executor_.overflow().has_value());
  submit(0);
  EXPECT_EQ(reduced(), 0u);
  EXPECT_FALSE(executor_.next_is_ready(executor_.flow(Stage::broadcast, 0, 1)));
}

TEST_F(ExecutorOverflow, IsForgottenByAReset) {
  submit(kMost);
  contribute(0);
  ASSERT_TRUE(executor_.overflow().has_value());
  executor_.reset(failed_ = 1);
  EXPECT_FALSE(executor_.overflow().has_value());
  submit(-5);
  contribute(0);
  EXPECT_EQ(reduced(), 1u);
}

TEST_F(ExecutorOverflow, IsNoFailureOfASum) {
  submit(kMost, Operation::sum);
  contribute(0, Operation::sum);
  EXPECT_FALSE(executor_.overflow().has_value());
  EXPECT_EQ(reduced(), 1u);
}

}  // namespace
}  // namespace gradcube::dataplane
