// A port's sets of flows: who wakes where, and what becomes of a job's flows when it leaves. And
// its bursts.

#include "dataplane/engine/flows/port_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <string>
#include <vector>

#include "dataplane/engine/flow_users.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/engine/loose_flows.h"

namespace gradcube::dataplane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

class PortQueueTest : public testing::Test {
 protected:
  Flow& add(LooseFlows& of) {
    Flow& flow = of.add();
    queue_.add_outgoing(of.job(), {}, flow);
    queue_.add_incoming(of.job().id(), {}, flow);
    return flow;
  }
  static std::vector<Flow*> awake(FlowRotation& flows) {
    std::vector<Flow*> found;
    flows.for_each_awake([&](Flow& flow) {
      found.push_back(&flow);
      return FlowRotation::Visit::later;
    });
    return found;
  }

  static void wake_all(Flow& flow) {
    wake_resend(flow);
    wake_consumed(flow);
    wake_segment(flow);
  }
  // Who is asked for segments, once each.
  std::vector<Flow*> served() {
    std::vector<Flow*> flows;
    queue_.segments.serve(1000, [&](Flow& flow, std::uint32_t&) {
      flows.push_back(&flow);
      return FlowRotation::Visit::nothing;
    });
    return flows;
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

// Of another job, in another lane.
TEST_F(PortQueueTest, TakesAFlowAsAWholeOrNotAtAllWhereverMemoryEnds) {
  std::vector<Flow*> all;
  for (unsigned i = 0; i < 64; ++i) all.push_back(&add(one_));
  Flow& another = other_.add();
  const FlowScheduler::Rank rank{.lane = 1, .step = 3};
  bool got_by = false;
  for (unsigned last = 1; !got_by; ++last) {
    SCOPED_TRACE("without memory from allocation " + std::to_string(last) + " on");
    unsigned asked = 0;
    try {
      const trainer::NoMemory none([&] { return ++asked >= last; });
      if (another.out == nullptr) queue_.add_outgoing(other_.job(), rank, another);
      queue_.add_incoming(other_.job().id(), rank, another);
      got_by = true;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(another.in, nullptr);
    }
    if (got_by) all.push_back(&another);
    for (Flow* flow : all) wake_all(*flow);
    EXPECT_EQ(awake(queue_.resends), all);
    EXPECT_EQ(awake(queue_.consumed), all);
    EXPECT_THAT(served(), UnorderedElementsAreArray(all));
  }
}

TEST_F(PortQueueTest, TakesAFlowBackWithoutMemoryWhereThereWasRoomForIt) {
  add(one_);
  Flow& flow = other_.add();
  queue_.make_room(other_.job(), {});
  const trainer::NoMemory none;
  for (unsigned i = 0; i < 3; ++i) {
    queue_.add_outgoing(other_.job(), {}, flow);
    queue_.remove_outgoing(flow);
  }
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
  burst.begin(port, 3U * Port::kBurst);
  EXPECT_EQ(burst.room, 3U * Port::kBurst);
  port.room = 5;
  burst.begin(port, 3U * Port::kBurst);
  EXPECT_EQ(burst.room, 5u);
}

}  // namespace
}  // namespace gradcube::dataplane
