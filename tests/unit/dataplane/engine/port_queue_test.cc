// A port's sets of flows: who wakes where, and what becomes of a job's flows when it leaves. And
// its bursts.

#include "dataplane/engine/flows/port_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/engine/flow_users.h"
#include "tests/unit/dataplane/engine/loose_flows.h"

namespace gradcube::dataplane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PortQueueTest : public testing::Test {
 protected:
  Flow& add(LooseFlows& of) {
    Flow& flow = of.add();
    queue_.add_outgoing(of.job(), {}, flow);
    queue_.add_incoming(of.job().id(), {}, flow);
    return flow;
  }
  static std::vector<const Flow*> awake(FlowRotation& flows) {
    std::vector<const Flow*> found;
    flows.for_each_awake([&](const Flow& flow) {
      found.push_back(&flow);
      return FlowRotation::Visit::later;
    });
    return found;
  }

  // How many segments of 1000 bytes the first of two jobs that have many sends in its turn.
  static unsigned segments_in_a_turn(const protocol::CreditSettings& credit) {
    protocol::PortCredit port_credit(credit);
    FakePort port;
    LooseFlows one(1);
    LooseFlows other(2);
    PortQueue queue(0, port, port_credit, 0);
    for (LooseFlows* of : {&one, &other}) {
      Flow& flow = of->add();
      queue.add_outgoing(of->job(), {}, flow);
      queue.segments.wake(flow);
    }
    unsigned turn = 0;
    bool ended = false;
    queue.segments.serve(1000, [&](const Flow& flow, std::uint32_t& bytes) {
      ended = ended || flow.job == &other.job();
      if (!ended) ++turn;
      bytes = 1000;
      return FlowRotation::Visit::served;
    });
    return turn;
  }

  LooseFlows one_{1};
  LooseFlows other_{2};
  FakePort port_;
  protocol::PortCredit credit_{{.segment_bytes = 1000}};
  PortQueue queue_{0, port_, credit_, 0};
};

TEST_F(PortQueueTest, WakesAFlowInTheSetThatIsMeantAlone) {
  add(one_);
  Flow& flow = add(one_);
  wake_answer(flow);
  EXPECT_THAT(awake(queue_.answers), ElementsAre(&flow));
  EXPECT_THAT(awake(queue_.resends), IsEmpty());
  EXPECT_THAT(awake(queue_.consumed), IsEmpty());
  wake_resend(flow);
  wake_consumed(flow);
  EXPECT_THAT(awake(queue_.resends), ElementsAre(&flow));
  EXPECT_THAT(awake(queue_.consumed), ElementsAre(&flow));
}

TEST_F(PortQueueTest, WakesTheRightFlowsAfterAnotherJobHasLeft) {
  Flow& gone = add(one_);
  Flow& first = add(other_);
  add(one_);
  Flow& second = add(other_);
  wake_answer(second);
  queue_.remove_all_of(one_.job());
  EXPECT_THAT(awake(queue_.answers), ElementsAre(&second));
  wake_answer(gone);
  wake_answer(first);
  EXPECT_THAT(awake(queue_.answers), ElementsAre(&first, &second));
}

TEST_F(PortQueueTest, GivesJobsTurnsOfOneSegmentWithARateAndLongOnesWithout) {
  EXPECT_EQ(segments_in_a_turn({.budget_bytes = 64'000, .segment_bytes = 1000}), 1u);
  EXPECT_EQ(segments_in_a_turn({.segment_bytes = 1000}), 263u);
}

TEST_F(PortQueueTest, WakesTheAnswersOfThoseWhoseCreditItRaises) {
  Flow& first = add(one_);
  Flow& second = add(one_);
  queue_.grant_credit(0, [](const Flow& flow, const auto& call) { ask_user(flow, call); });
  EXPECT_THAT(awake(queue_.answers), ElementsAre(&first, &second)) << "their first window";
  EXPECT_EQ(second.receive.limit(), 8u);
}

TEST(PortQueueBurst, HasAsMuchRoomAsThePortWantsInAnIterationAndCanTake) {
  FakePort port(3 * Port::kBurst);
  PortQueue::Burst burst(0);
  port.room = Port::kMostPerIteration;
  burst.begin(port);
  EXPECT_EQ(burst.room, 3U * Port::kBurst);
  port.room = 5;
  burst.begin(port);
  EXPECT_EQ(burst.room, 5u);
}

}  // namespace
}  // namespace gradcube::dataplane
