// The executor in a ring: server [1] of star:4, between [0] and [2]. Piece o is unit o of the
// buffer.

#include <gtest/gtest.h>
#include <optional>

#include "tests/unit/dataplane/engine/lone_executor.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::dataplane {
namespace {

using protocol::Stage;

class ExecutorInRing : public testing::Test {
 protected:
  Flow& next(Stage stage) { return server_.flow(stage, 0, 2); }
  Flow& before(Stage stage) { return server_.flow(stage, 0, 0); }

  // The unit of the buffer that the next segment to [2] carries.
  std::optional<unsigned> ready(Stage stage) {
    const auto segment = server_->next_segment(next(stage));
    if (!segment.has_value()) return std::nullopt;
    const auto* buffer = reinterpret_cast<const std::uint8_t*>(server_.session().buffer());
    return static_cast<unsigned>((segment->payload - buffer) / control::kUnitBytes);
  }
  void send(Stage stage) { next(stage).send.record_send(0); }
  // A segment from [0].
  void contribute(std::uint64_t sequence, float value) {
    server_.contribute(before(Stage::aggregation), sequence, server_.from_neighbour(value));
  }
  void receive_result(std::uint32_t sequence, float value) {
    Contribution result = server_.from_neighbour(value);
    result.sequence = sequence;
    Flow& flow = before(Stage::broadcast);
    const auto accepted = server_->accept(flow, sequence, result);
    ASSERT_FALSE(accepted.refused.has_value());
    protocol::arrive(flow.receive, sequence);
    ASSERT_FALSE(server_->take(flow, sequence, result, accepted)) << "it is written";
    rte_pktmbuf_free(result.packet);
  }

  LoneExecutor server_{"star:4", 1, 1, "hips:ring"};
};

TEST_F(ExecutorInRing, HasAFlowToTheNextServerAndOneFromTheServerBeforeInEachStage) {
  ASSERT_EQ(server_->flows().size(), 4u);
  EXPECT_EQ(next(Stage::aggregation).peer, 2u);
  EXPECT_EQ(before(Stage::aggregation).peer, 0u);
  EXPECT_EQ(next(Stage::broadcast).peer, 2u);
  EXPECT_EQ(before(Stage::broadcast).peer, 0u);
}

TEST_F(ExecutorInRing, SendsOnWhatCameARoundBeforeWithItsOwnContributionAdded) {
  server_.submit(1.0F);
  EXPECT_EQ(ready(Stage::aggregation), 0u);
  send(Stage::aggregation);
  EXPECT_EQ(ready(Stage::aggregation), std::nullopt) << "the sum has not come yet";
  contribute(1, 20.0F);
  EXPECT_EQ(ready(Stage::aggregation), std::nullopt) << "it is that of a later round";
  contribute(0, 10.0F);
  EXPECT_EQ(ready(Stage::aggregation), 3u);
  EXPECT_EQ(server_.unit(3), 11.0F);
  send(Stage::aggregation);
  EXPECT_EQ(ready(Stage::aggregation), 2u);
  EXPECT_EQ(server_.unit(2), 21.0F);
  send(Stage::aggregation);
  EXPECT_EQ(ready(Stage::aggregation), std::nullopt) << "the ring has four servers";
  EXPECT_EQ(ready(Stage::broadcast), std::nullopt);
  contribute(2, 30.0F);
  EXPECT_EQ(server_.unit(1), 31.0F);
  EXPECT_EQ(ready(Stage::broadcast), 1u);
}

TEST_F(ExecutorInRing, PassesResultsOnUntilTheyAreBeforeTheirOwners) {
  server_.submit(1.0F);
  for (std::uint64_t round = 0; round < 3; ++round) contribute(round, 9.0F);
  EXPECT_EQ(ready(Stage::broadcast), 1u);
  send(Stage::broadcast);
  EXPECT_EQ(ready(Stage::broadcast), std::nullopt);
  receive_result(0, 40.0F);
  EXPECT_EQ(server_.unit(0), 40.0F);
  EXPECT_EQ(ready(Stage::broadcast), 0u);
  send(Stage::broadcast);
  receive_result(1, 43.0F);
  EXPECT_EQ(ready(Stage::broadcast), 3u);
  send(Stage::broadcast);
  receive_result(2, 42.0F);
  EXPECT_EQ(server_.unit(2), 42.0F);
  EXPECT_EQ(ready(Stage::broadcast), std::nullopt) << "[2] has its own";
}

TEST_F(ExecutorInRing, EndsWhenResultsHaveComeAndThoseThatWereSentAreAcknowledged) {
  server_.submit(1.0F);
  for (std::uint64_t round = 0; round < 3; ++round) {
    contribute(round, 9.0F);
    send(Stage::aggregation);
    send(Stage::broadcast);
  }
  receive_result(0, 1.0F);
  receive_result(1, 1.0F);
  next(Stage::broadcast).send.on_acknowledgement(3, 0, 16, 0, 0);
  EXPECT_FALSE(server_->finish_completed(0)) << "the last result is not here";
  receive_result(2, 1.0F);
  EXPECT_TRUE(server_->finish_completed(0));
}

// Nothing goes back that could carry the word.
TEST_F(ExecutorInRing, TellsTheServerBeforeThatItsResultsAreHere) {
  server_.submit(1.0F);
  for (std::uint64_t round = 0; round < 3; ++round) contribute(round, 9.0F);
  for (std::uint32_t round = 0; round < 2; ++round) {
    receive_result(round, 1.0F);
    EXPECT_FALSE(server_->sender_waits(before(Stage::broadcast), round));
  }
  receive_result(2, 1.0F);
  EXPECT_TRUE(server_->sender_waits(before(Stage::broadcast), 2));
}

TEST_F(ExecutorInRing, NeverSendsToTheServerBeforeAndTakesNothingFromTheNext) {
  server_.submit(1.0F);
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    EXPECT_FALSE(server_->next_is_ready(before(stage)));
    EXPECT_EQ(server_->backlog(before(stage)), 0u);
    const Contribution segment = server_.from_neighbour(1.0F);
    const auto accepted = server_->accept(next(stage), 0, segment);
    EXPECT_EQ(accepted.refused, DropReason::outside_window);
    EXPECT_EQ(server_->consumed(next(stage)), 0u);
    rte_pktmbuf_free(segment.packet);
  }
}

TEST_F(ExecutorInRing, CountsTheSegmentsOfTheFirstRoundAsReady) {
  server_.submit(1.0F);
  EXPECT_EQ(server_->backlog(next(Stage::aggregation)), 1u);
}

// In one of 40 servers, whose rounds have one segment each.
TEST(ExecutorInALongRing, CountsWhatIsReadyOneByOneAndThenInEverLongerSteps) {
  LoneExecutor server{"star:40", 1, 1, "hips:ring"};
  server.submit(1.0F);
  Flow& next = server.flow(Stage::aggregation, 0, 2);
  next.send.record_send(0);
  std::uint64_t come = 0;
  const auto backlog_after = [&](std::uint64_t rounds) {
    for (; come < rounds; ++come) {
      server.contribute(server.flow(Stage::aggregation, 0, 0), come, server.from_neighbour(1.0F));
    }
    return unsigned{server->backlog(next)};
  };
  EXPECT_EQ(backlog_after(0), 0u);
  EXPECT_EQ(backlog_after(7), 7u);
  EXPECT_EQ(backlog_after(12), 8u);
  EXPECT_EQ(backlog_after(20), 16u);
  EXPECT_EQ(backlog_after(39), 38u) << "the last one is this server's own sum";
}

TEST_F(ExecutorInRing, StartsAnewAfterAReset) {
  server_.submit(1.0F);
  contribute(0, 1.0F);
  server_->reset(1);
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    EXPECT_FALSE(server_->next_is_ready(before(stage)));
    EXPECT_FALSE(server_->next_is_ready(next(stage)));
  }
  server_.submit(1.0F);
  EXPECT_EQ(ready(Stage::aggregation), 0u);
  EXPECT_FALSE(server_->next_is_ready(before(Stage::aggregation)));
}

}  // namespace
}  // namespace gradcube::dataplane
