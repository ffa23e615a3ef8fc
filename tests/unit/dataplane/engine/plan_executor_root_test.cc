// The executor in a step of the pattern root: ps:1 on star:3, whose one piece is unit 0 of the
// buffer, as server [1] and as one of those that send to it.

#include <cstdint>
#include <gtest/gtest.h>

#include "tests/unit/dataplane/engine/lone_executor.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::dataplane {
namespace {

using protocol::Stage;

constexpr unsigned kRootsDigit = 0;  // in the step; those of [0] and [2] are 1 and 2

void receive_result(LoneExecutor& server, Flow& flow, float value) {
  Contribution result = server.from_neighbour(value);
  const auto accepted = server->accept(flow, 0, result);
  ASSERT_FALSE(accepted.refused.has_value());
  protocol::arrive(flow.receive, 0);
  ASSERT_FALSE(server->take(flow, 0, result, accepted)) << "it is written";
  rte_pktmbuf_free(result.packet);
}

TEST(ExecutorAtRoot, AddsWhenAllHaveSentAndThenSendsTheSum) {
  LoneExecutor root("star:3", 1, 1, "ps:1");
  ASSERT_EQ(root->flows().size(), 4u);
  root.submit(1.0F);
  Flow& result = root.flow(Stage::broadcast, 0, 1);
  EXPECT_FALSE(root->next_is_ready(root.flow(Stage::aggregation, 0, 1))) << "it sends no gradient";
  root.contribute(root.flow(Stage::aggregation, 0, 2), 0, root.from_neighbour(20.0F));
  EXPECT_FALSE(root->next_is_ready(result));
  root.contribute(root.flow(Stage::aggregation, 0, 1), 0, root.from_neighbour(10.0F));
  EXPECT_EQ(root.unit(0), 31.0F);
  EXPECT_TRUE(root->next_is_ready(result));
  EXPECT_TRUE(root->next_is_ready(root.flow(Stage::broadcast, 0, 2)));
  EXPECT_FALSE(root->finish_completed(0)) << "nobody has the sum yet";
}

TEST(ExecutorAtRoot, TakesContributionsThatCameBeforeItsOwnTrainersGradient) {
  LoneExecutor root("star:3", 1, 1, "ps:1");
  for (const unsigned digit : {1U, 2U}) {
    root.contribute(root.flow(Stage::aggregation, 0, digit), 0, root.from_neighbour(4.0F));
  }
  root.submit(1.0F);
  EXPECT_EQ(root.unit(0), 9.0F);
}

TEST(ExecutorAtRoot, EndsWhenAllHaveAcknowledgedTheSum) {
  LoneExecutor root("star:3", 1, 1, "ps:1");
  root.submit(1.0F);
  for (const unsigned digit : {1U, 2U}) {
    root.contribute(root.flow(Stage::aggregation, 0, digit), 0, root.from_neighbour(4.0F));
  }
  for (const unsigned digit : {1U, 2U}) {
    EXPECT_FALSE(root->finish_completed(0));
    Flow& flow = root.flow(Stage::broadcast, 0, digit);
    flow.send.record_send(0);
    flow.send.on_acknowledgement(1, 0, 16, 0, 0);
  }
  EXPECT_TRUE(root->finish_completed(0));
}

TEST(ExecutorBesideRoot, SendsItsGradientAndEndsWhenTheSumIsHere) {
  LoneExecutor server("star:3", 2, 1, "ps:1");
  ASSERT_EQ(server->flows().size(), 2u);
  server.submit(1.0F);
  Flow& gradient = server.flow(Stage::aggregation, 0, kRootsDigit);
  Flow& result = server.flow(Stage::broadcast, 0, kRootsDigit);
  EXPECT_EQ(gradient.peer, 1u);
  EXPECT_TRUE(server->next_is_ready(gradient));
  gradient.send.record_send(0);
  EXPECT_FALSE(server->next_is_ready(result)) << "it sends no result";
  EXPECT_FALSE(server->finish_completed(0));
  receive_result(server, result, 31.0F);
  EXPECT_EQ(server.unit(0), 31.0F);
  EXPECT_TRUE(server->sender_waits(result, 0)) << "nothing else tells the root";
  EXPECT_TRUE(server->finish_completed(0)) << "the sum shows that the gradient was used";
}

TEST(ExecutorBesideRoot, TakesNoContribution) {
  LoneExecutor server("star:3", 2, 1, "ps:1");
  server.submit(1.0F);
  const Contribution segment = server.from_neighbour(1.0F);
  const auto accepted = server->accept(server.flow(Stage::aggregation, 0, kRootsDigit), 0, segment);
  EXPECT_EQ(accepted.refused, DropReason::outside_window);
  rte_pktmbuf_free(segment.packet);
}

// The others of a group have no part in the exchange among the groups.
TEST(ExecutorBesideRoot, HasNoFlowsInTheStepsAfterTheRoots) {
  const auto flows = [](bcube::ServerId server) {
    return LoneExecutor("bcube:3,2", server, 1, "two-level")->flows().size();
  };
  EXPECT_EQ(flows(3), 2u * (2 + 2));
  EXPECT_EQ(flows(4), 2u);
}

}  // namespace
}  // namespace gradcube::dataplane
