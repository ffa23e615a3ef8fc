// What a session takes from trainers of a reproducible job.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/engine/session/session.h"
#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using aggregation::Operation;

constexpr std::uint64_t kCarrierHeap = 1 << 20;

class SessionCarriers : public testing::Test {
 protected:
  explicit SessionCarriers(unsigned ranks = 3)
      : session_(whole_region(kCarrierHeap), -1, SessionShape{ranks, {1}, true},
                 std::vector<Doorbell*>{}) {}

  Session::Take submit(shared::CollectiveKind kind, DataType type, Operation operation,
                       std::uint64_t count = 16) {
    shared::Submission& submission = submission_entry(session_.region(), submitted_);
    submission = {};
    submission.request = ++submitted_;
    submission.offset = shared::kHeapOffset;
    submission.count = count;
    submission.collective.kind = static_cast<std::uint8_t>(kind);
    submission.dtype = static_cast<std::uint8_t>(type);
    submission.collective.op = static_cast<std::uint8_t>(operation);
    session_.region().header().submission_tail.store(submitted_);
    return session_.take();
  }
  CollectiveRequest taken(shared::CollectiveKind kind, DataType type, Operation operation) {
    EXPECT_EQ(submit(kind, type, operation), Session::Take::taken);
    return session_.request(0, submitted_);
  }
  void expect_violation(const std::string& reason) {
    ASSERT_NE(session_.violation(), nullptr);
    EXPECT_NE(std::string(session_.violation()).find(reason), std::string::npos)
        << session_.violation();
  }

  Session session_;
  std::uint64_t submitted_ = 0;
};

TEST_F(SessionCarriers, AreWhatAReductionAddsAndItsBufferHolds) {
  const CollectiveRequest mean =
      taken(shared::CollectiveKind::all_reduce, DataType::float32, Operation::average);
  EXPECT_EQ(mean.carrier, (aggregation::Carrier{DataType::sum64, Operation::sum}));
  EXPECT_EQ(mean.bytes, 16u * 8);
  EXPECT_EQ(mean.dtype, DataType::float32);
  EXPECT_EQ(mean.operation, Operation::average);
  const CollectiveRequest chunks =
      taken(shared::CollectiveKind::reduce_scatter, DataType::float64, Operation::sum);
  EXPECT_EQ(chunks.carrier.type, DataType::sum128);
  EXPECT_EQ(chunks.bytes, 3u * 16 * 16);
  EXPECT_EQ(taken(shared::CollectiveKind::reduce, DataType::float64, Operation::max).bytes,
            16u * 8);
  EXPECT_EQ(taken(shared::CollectiveKind::broadcast, DataType::float32, Operation::sum).bytes,
            16u * 4);
}

TEST_F(SessionCarriers, AreNoTypesThatATrainerNames) {
  EXPECT_EQ(submit(shared::CollectiveKind::all_reduce, DataType::sum64, Operation::sum),
            Session::Take::violation);
  expect_violation("element type is unknown");
}

// A buffer that would hold the values, but not what carries them.
TEST_F(SessionCarriers, CountInTheBytesOfABuffer) {
  EXPECT_EQ(submit(shared::CollectiveKind::all_reduce, DataType::float32, Operation::sum,
                   kCarrierHeap / 8),
            Session::Take::taken);
  EXPECT_EQ(submit(shared::CollectiveKind::all_reduce, DataType::float32, Operation::sum,
                   kCarrierHeap / 8 + 1),
            Session::Take::violation);
  expect_violation("outside its heap");
}

class SessionOfManyTrainers : public SessionCarriers {
 protected:
  SessionOfManyTrainers() : SessionCarriers(aggregation::kMostReproducibleFloat64 + 1) {}
};

TEST_F(SessionOfManyTrainers, RefusesASumThatNothingCarries) {
  EXPECT_EQ(submit(shared::CollectiveKind::all_reduce, DataType::float32, Operation::sum),
            Session::Take::taken);
  EXPECT_EQ(submit(shared::CollectiveKind::all_reduce, DataType::float64, Operation::sum),
            Session::Take::violation);
  expect_violation("more trainers than can be reproduced");
}

}  // namespace
}  // namespace gradcube::dataplane
