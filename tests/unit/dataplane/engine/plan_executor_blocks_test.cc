// What the executor sends where short pieces travel together.

#include <gtest/gtest.h>
#include <vector>

#include "tests/unit/dataplane/engine/lone_executor.h"

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
    std::uint64_t sequence = 0;
    server.flow(Stage::broadcast, 1, digit).receive.arrive(0, sequence, 0);
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
