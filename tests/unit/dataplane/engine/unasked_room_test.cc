#include "dataplane/engine/flows/unasked_room.h"

#include <gtest/gtest.h>

#include "tests/unit/dataplane/engine/loose_flows.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint32_t kFlowBytes = protocol::SendWindow::kUnaskedBytes;

class UnaskedRoomTest : public testing::Test {
 protected:
  // Whether the flow could send such a frame; then it has.
  bool send(Flow& flow, std::uint32_t bytes = kFlowBytes) {
    if (!room_.may_send(flow, bytes)) return false;
    flow.send.record_unasked(bytes, 0);
    room_.record(flow);
    return true;
  }
  // All that the flow has sent has arrived.
  static void acknowledge(Flow& flow) {
    flow.send.on_acknowledgement(static_cast<std::uint32_t>(flow.send.next()), 0, 0, 0, 1);
  }

  LooseFlows one_{1};
  LooseFlows other_{2};
  UnaskedRoom room_;
};

TEST_F(UnaskedRoomTest, IsSharedByTheFlowsOfAllJobs) {
  Flow& first = one_.add();
  Flow& second = other_.add();
  Flow& third = other_.add();
  EXPECT_TRUE(send(first));
  EXPECT_FALSE(send(first)) << "more than a flow may";
  EXPECT_TRUE(send(second));
  EXPECT_FALSE(send(third, 1));
  acknowledge(first);
  EXPECT_TRUE(send(third));
}

TEST_F(UnaskedRoomTest, HoldsNoMoreFlowsThanItKnows) {
  for (std::size_t i = 0; i < UnaskedRoom::kMostFlows; ++i) EXPECT_TRUE(send(one_.add(), 1));
  Flow& late = one_.add();
  EXPECT_FALSE(send(late, 1));
}

TEST_F(UnaskedRoomTest, IsFreeAgainWhenAJobHasLeft) {
  send(one_.add());
  send(one_.add());
  Flow& waiting = other_.add();
  ASSERT_FALSE(send(waiting));
  room_.forget_all_of(one_.job());
  EXPECT_TRUE(send(waiting));
}

}  // namespace
}  // namespace gradcube::dataplane
