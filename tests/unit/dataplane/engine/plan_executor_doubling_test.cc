// The executor where steps double: recursive_doubling on bcube:2,2, as server [0,0], whose
// neighbours are [0,1] in step 0 and [1,0] in step 1. A collective is one unit of the buffer. What
// is sent is looked at again after each sum, as a resend would read it.

#include <cstdint>
#include <gtest/gtest.h>
#include <stdexcept>

#include "tests/unit/dataplane/engine/lone_executor.h"

namespace gradcube::dataplane {
namespace {

using protocol::Stage;

class ExecutorThatDoubles : public testing::Test {
 protected:
  Flow& flow(unsigned step) { return server_.flow(Stage::aggregation, step, 1); }
  void contribute(unsigned step, std::uint64_t sequence, float value) {
    server_.contribute(flow(step), sequence, server_.from_neighbour(value));
  }
  // What the next segment of a step carries, or a sent one. It counts as sent.
  float send(unsigned step) {
    const auto segment = server_->next_segment(flow(step));
    EXPECT_TRUE(segment.has_value());
    flow(step).send.record_send(0);
    return segment.has_value() ? *reinterpret_cast<const float*>(segment->payload) : -1;
  }
  float send_again(unsigned step, std::uint64_t sequence = 0) {
    return *reinterpret_cast<const float*>(server_->sent_segment(flow(step), sequence).payload);
  }
  // The neighbour has got, and used, so many segments.
  void acknowledge(unsigned step, std::uint32_t arrived, std::uint8_t held = 0) {
    flow(step).send.on_acknowledgement(arrived, 0, 16, held, 0);
  }

  LoneExecutor server_{"bcube:2,2", 0, 1, "recursive_doubling"};
};

TEST_F(ExecutorThatDoubles, AddsEachStepsContributionToTheSumOfTheStepBefore) {
  server_.submit(1.0F);
  EXPECT_EQ(send(0), 1.0F);
  EXPECT_FALSE(server_->next_is_ready(flow(1)));
  contribute(0, 0, 10.0F);
  EXPECT_EQ(send(1), 11.0F);
  contribute(1, 0, 100.0F);
  EXPECT_EQ(server_.unit(0), 111.0F);
}

// Each may have been lost, or lie in the neighbour's memory as a pointer to this one.
TEST_F(ExecutorThatDoubles, KeepsWhatItHasSentUnchangedUntilTheNeighboursHaveUsedIt) {
  server_.submit(1.0F);
  send(0);
  contribute(0, 0, 10.0F);
  EXPECT_EQ(send_again(0), 1.0F);
  EXPECT_EQ(server_.unit(0), 1.0F) << "the trainer's buffer gets the sum of the last step alone";
  send(1);
  contribute(1, 0, 100.0F);
  EXPECT_EQ(send_again(0), 1.0F);
  EXPECT_EQ(send_again(1), 11.0F);
}

// Step 1's contribution comes from a server whose own step 0 ended earlier.
TEST_F(ExecutorThatDoubles, AddsALaterStepThatWasHereFirstInItsTurn) {
  contribute(1, 0, 100.0F);
  contribute(0, 0, 10.0F);
  server_.submit(1.0F);
  EXPECT_EQ(server_.unit(0), 111.0F);
  EXPECT_EQ(send(0), 1.0F);
  EXPECT_EQ(send(1), 11.0F);
}

TEST_F(ExecutorThatDoubles, EndsWhenTheNeighboursOfAllStepsHaveUsedWhatTheyGot) {
  server_.submit(1.0F);
  send(0);
  contribute(0, 0, 10.0F);
  send(1);
  contribute(1, 0, 100.0F);
  EXPECT_FALSE(server_->finish_completed(0));
  acknowledge(1, 1);
  EXPECT_FALSE(server_->finish_completed(0));
  acknowledge(0, 1, 1);
  EXPECT_FALSE(server_->finish_completed(0)) << "it holds what is not used yet";
  acknowledge(0, 1);
  EXPECT_TRUE(server_->finish_completed(0));
}

TEST_F(ExecutorThatDoubles, TellsItsNeighbourAtOnceThatAContributionIsUsed) {
  server_.submit(1.0F);
  contribute(0, 0, 10.0F);
  EXPECT_FALSE(server_->sender_waits(flow(0), 0)) << "its own segment will tell it";
  send(0);
  EXPECT_TRUE(server_->sender_waits(flow(0), 0));
}

TEST_F(ExecutorThatDoubles, GivesCollectivesInFlightBuffersOfTheirOwn) {
  server_.submit(1.0F);
  const Contribution first = server_.from_neighbour(10.0F);
  server_.submit(2.0F);  // the same buffer: the first one's value has been taken
  EXPECT_EQ(send(0), 1.0F);
  EXPECT_EQ(send(0), 2.0F);
  contribute(0, 1, 20.0F);
  server_.contribute(flow(0), 0, first);
  EXPECT_EQ(send(1), 11.0F);
  EXPECT_EQ(send(1), 22.0F);
  contribute(1, 1, 200.0F);
  EXPECT_EQ(server_.unit(0), 222.0F);
  EXPECT_EQ(send_again(1, 0), 11.0F);
}

TEST_F(ExecutorThatDoubles, BeginsAnewAfterAReset) {
  server_.submit(1.0F);
  send(0);
  contribute(0, 0, 10.0F);
  server_->reset(1);
  EXPECT_EQ(server_->flows().front().send.next(), 0u);
  EXPECT_EQ(server_.packets().in_use(), 0u) << "what waited has gone back";
}

}  // namespace
}  // namespace gradcube::dataplane
