// The order in which flows are served, and which of them are looked at.

#include "dataplane/engine/flows/flow_rotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "tests/unit/dataplane/engine/loose_flows.h"

namespace gradcube::dataplane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Visit = FlowRotation::Visit;

// Flows with the peers 0, 1, 2, ..., in this order.
class FlowRotationTest : public testing::Test {
 protected:
  void add(unsigned flows) {
    for (unsigned i = 0; i < flows; ++i) places_.push_back(rotation_.add(flows_.add(i)));
  }
  void wake(const std::vector<unsigned>& which) {
    for (const unsigned flow : which) rotation_.wake(places_[flow]);
  }
  // Serves up to `limit`; each visit finds the same. Returns who was visited.
  std::vector<unsigned> visited(unsigned limit, Visit found = Visit::served) {
    std::vector<unsigned> peers;
    rotation_.serve(limit, [&](const Flow& flow) {
      peers.push_back(flow.peer);
      return found;
    });
    return peers;
  }

  LooseFlows flows_;
  FlowRotation rotation_;
  std::vector<std::size_t> places_;
};

TEST_F(FlowRotationTest, VisitsNobodyWhileAllSleep) {
  add(5);
  EXPECT_FALSE(rotation_.any_awake());
  EXPECT_THAT(visited(10), IsEmpty());
}

TEST_F(FlowRotationTest, KeepsItsOrderWhateverSleeps) {
  add(70);
  wake({69, 3, 64, 0, 5});
  EXPECT_THAT(visited(5), ElementsAre(0, 3, 5, 64, 69));
  wake({4});
  EXPECT_THAT(visited(6), ElementsAre(0, 3, 4, 5, 64, 69));
}

TEST_F(FlowRotationTest, BeginsTheNextRoundBehindTheLastOneThatWasServed) {
  add(4);
  wake({0, 1, 2, 3});
  EXPECT_THAT(visited(2), ElementsAre(0, 1));
  EXPECT_THAT(visited(3), ElementsAre(2, 3, 0));
  EXPECT_THAT(visited(1), ElementsAre(1));
}

TEST_F(FlowRotationTest, MovesNoTurnWhenAVisitServesNothing) {
  add(3);
  wake({0, 1, 2});
  EXPECT_THAT(visited(1), ElementsAre(0));
  EXPECT_THAT(visited(10, Visit::later), ElementsAre(1, 2, 0));
  EXPECT_THAT(visited(1), ElementsAre(1));
}

TEST_F(FlowRotationTest, LetsAFlowSleepOnceAVisitFindsNothing) {
  add(3);
  wake({0, 2});
  EXPECT_THAT(visited(10, Visit::nothing), ElementsAre(0, 2));
  EXPECT_FALSE(rotation_.any_awake());
  EXPECT_THAT(visited(10), IsEmpty());
}

TEST_F(FlowRotationTest, KeepsAFlowAwakeThatIsToBeServedLater) {
  add(3);
  wake({0, 2});
  EXPECT_THAT(visited(10, Visit::later), ElementsAre(0, 2)) << "one round";
  EXPECT_THAT(visited(10, Visit::later), ElementsAre(0, 2));
  EXPECT_TRUE(rotation_.any_awake());
}

TEST_F(FlowRotationTest, CountsWhatWasServedUpToTheLimit) {
  add(3);
  wake({0, 1, 2});
  unsigned left = 2;
  const auto serve_twice = [&](const Flow& flow) {
    if (flow.peer != 1 || left == 0) return Visit::nothing;
    --left;
    return Visit::served;
  };
  EXPECT_EQ(rotation_.serve(10, serve_twice), 2u);
  wake({1});
  left = 9;
  EXPECT_EQ(rotation_.serve(4, serve_twice), 4u);
  EXPECT_EQ(left, 5u);
}

TEST_F(FlowRotationTest, ServesAFlowThatAVisitHasWoken) {
  add(3);
  wake({0});
  std::vector<unsigned> peers;
  rotation_.serve(2, [&](const Flow& flow) {
    peers.push_back(flow.peer);
    if (flow.peer == 0) wake({2});
    return Visit::served;
  });
  EXPECT_THAT(peers, ElementsAre(0, 2));
}

TEST_F(FlowRotationTest, KeepsPlacesSleepAndTurnsOfThoseThatStay) {
  add(6);
  wake({0, 1, 2, 4, 5});
  EXPECT_THAT(visited(2), ElementsAre(0, 1));
  std::vector<std::pair<unsigned, std::size_t>> moved;
  rotation_.remove_if([](const Flow& flow) { return flow.peer == 1 || flow.peer == 4; },
                      [&](const Flow& flow, std::size_t place) {
                        moved.emplace_back(flow.peer, place);
                        places_[flow.peer] = place;
                      });
  using Moved = std::pair<unsigned, std::size_t>;
  EXPECT_THAT(moved, ElementsAre(Moved(0, 0), Moved(2, 1), Moved(3, 2), Moved(5, 3)));
  EXPECT_THAT(visited(3), ElementsAre(2, 5, 0)) << "3 sleeps, and it is the turn of 2";
  wake({3});
  EXPECT_THAT(visited(2), ElementsAre(2, 3));
}

TEST_F(FlowRotationTest, BeginsAnewWhenTheOneWhoseTurnItWasLeavesLast) {
  add(3);
  wake({0, 1, 2});
  EXPECT_THAT(visited(2), ElementsAre(0, 1));
  rotation_.remove_if([](const Flow& flow) { return flow.peer == 2; },
                      [](const Flow&, std::size_t) {});
  EXPECT_THAT(visited(2), ElementsAre(0, 1));
  rotation_.remove_if([](const Flow&) { return true; }, [](const Flow&, std::size_t) {});
  EXPECT_TRUE(rotation_.empty());
  EXPECT_THAT(visited(2), IsEmpty());
}

TEST_F(FlowRotationTest, ShowsEachFlowThatIsAwakeOnceInTheOrderOfTheSet) {
  add(4);
  wake({3, 0, 2});
  EXPECT_THAT(visited(1), ElementsAre(0));
  std::vector<unsigned> peers;
  const auto look = [&](const Flow& flow) {
    peers.push_back(flow.peer);
    return flow.peer == 2 ? Visit::nothing : Visit::later;
  };
  rotation_.for_each_awake(look);
  EXPECT_THAT(peers, ElementsAre(0, 2, 3));
  peers.clear();
  rotation_.for_each_awake(look);
  EXPECT_THAT(peers, ElementsAre(0, 3));
}

}  // namespace
}  // namespace gradcube::dataplane
