// What the executor sends where short pieces travel together.

#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "dataplane/engine/flows/port_queue.h"
#include "tests/unit/dataplane/engine/lone_executor.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::dataplane {
namespace {

using protocol::Stage;

TEST(PlanExecutor, SendsALaterStepThePartsOfABlockThatTheStepBeforeHasReduced) {
  LoneExecutor server("bcube:3,2", 0, 3);
  server.submit(1.0F);
  EXPECT_EQ(server->next_segment(server.flow(Stage::aggregation, 0, 1))->bytes,
            3 * control::kUnitBytes)
      << "the three pieces that go to this neighbour";
  constexpr auto kBlock = static_cast<std::uint16_t>(3 * control::kUnitBytes);
  for (const unsigned digit : {1U, 2U}) {
    EXPECT_FALSE(server->next_is_ready(server.flow(Stage::aggregation, 1, 1)));
    server.contribute(server.flow(Stage::aggregation, 0, digit), 0,
                      server.from_neighbour(10.0F, kBlock));
  }
  for (const unsigned digit : {1U, 2U}) {
    const auto part = server->next_segment(server.flow(Stage::aggregation, 1, digit));
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ(part->bytes, control::kUnitBytes);
    EXPECT_EQ(part->payload,
              reinterpret_cast<std::uint8_t*>(server.session().buffer()) + digit * 64);
    EXPECT_EQ(server.unit(digit), 21.0F);
  }
}

// Those that are awake are asked what they have to send.
std::set<const Flow*> awake(PortQueue& queue) {
  std::set<const Flow*> flows;
  queue.segments.serve(100, [&](const Flow& flow, std::uint32_t&) {
    flows.insert(&flow);
    return FlowRotation::Visit::nothing;
  });
  return flows;
}

TEST(PlanExecutor, WakesEveryFlowThatSendsAPartOfABlock) {
  constexpr auto kBlock = static_cast<std::uint16_t>(3 * control::kUnitBytes);
  LoneExecutor server("bcube:3,2", 0, 3);
  FakePort port;
  protocol::PortCredit credit({});
  PortQueue queue(0, port, credit, 0);
  Flow& first = server.flow(Stage::aggregation, 1, 1);
  Flow& second = server.flow(Stage::aggregation, 1, 2);
  for (Flow* flow : {&first, &second}) queue.add_outgoing(*flow->job, {}, *flow);
  server.submit(1.0F);
  awake(queue);
  for (const unsigned digit : {1U, 2U}) {
    EXPECT_TRUE(awake(queue).empty());
    server.contribute(server.flow(Stage::aggregation, 0, digit), 0,
                      server.from_neighbour(10.0F, kBlock));
  }
  EXPECT_EQ(awake(queue), (std::set<const Flow*>{&first, &second}));
}

// What goes back in step 0's mirror is this server's own piece and the two that its neighbours at
// level 1 own.
TEST(PlanExecutor, BroadcastsABlockOnceAllOfItsResultsAreHere) {
  constexpr auto kBlock = static_cast<std::uint16_t>(3 * control::kUnitBytes);
  const auto sum_up = [](LoneExecutor& server) {
    for (const unsigned digit : {1U, 2U}) {
      server.contribute(server.flow(Stage::aggregation, 1, digit), 0, server.from_neighbour(2.0F));
    }
  };
  const auto receive = [](LoneExecutor& server, unsigned digit) {
    protocol::arrive(server.flow(Stage::broadcast, 1, digit).receive, 0);
  };
  const std::vector<std::vector<int>> orders = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}};
  for (const std::vector<int>& order : orders) {
    LoneExecutor server("bcube:3,2", 0, 3);
    server.submit(1.0F);
    for (const unsigned digit : {1U, 2U}) {
      server.contribute(server.flow(Stage::aggregation, 0, digit), 0,
                        server.from_neighbour(10.0F, kBlock));
    }
    Flow& back = server.flow(Stage::broadcast, 0, 1);
    for (const int next : order) {
      EXPECT_FALSE(server->next_is_ready(back));
      next == 0 ? sum_up(server) : receive(server, static_cast<unsigned>(next));
    }
    ASSERT_TRUE(server->next_is_ready(back));
    EXPECT_EQ(server->next_segment(back)->bytes, kBlock);
  }
}

}  // namespace
}  // namespace gradcube::dataplane
