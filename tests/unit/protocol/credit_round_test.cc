// How much of a budget a flow is granted at a time.

#include <gtest/gtest.h>
#include <utility>

#include "tests/unit/protocol/credit_flows.h"

namespace gradcube::protocol {
namespace {

TEST(CreditPool, AFlowGetsTwoSegmentsInARoundHoweverManyHaveArrived) {
  Flows flows(segments(24), 2);
  flows.ask(0, 100);
  flows.pool.distribute();
  EXPECT_EQ(flows.granted(0), 2U);
  flows.ask(1, 100);
  flows.pool.distribute();
  EXPECT_EQ(flows.granted(1), 2U) << "there is something for those that ask later";
  ASSERT_EQ(flows.granted(0), 4U);
  for (unsigned i = 0; i < 4; ++i) flows.arrive(0, 100);
  flows.pool.distribute();
  EXPECT_EQ(flows.granted(0), 2U) << "the others may fill the gap that a burst leaves";
}

TEST(CreditPool, SegmentsThatArriveOneByOneDoubleWhatIsOnItsWay) {
  Flows flows(segments(24), 1);
  flows.ask(0, 100);
  flows.pool.distribute();
  for (const std::uint64_t on_its_way : {2U, 4U, 8U, 16U}) {
    ASSERT_EQ(flows.granted(0), on_its_way);
    for (std::uint64_t i = 0; i < on_its_way; ++i) {
      flows.arrive(0, 100);
      flows.pool.distribute();
    }
  }
  EXPECT_EQ(flows.granted(0), 24U);
}

TEST(CreditPool, ARoundOfAFastPortIsWhatItsSettingsSayUpToAQuarterOfTheBudget) {
  for (const auto& [budget, granted] :
       {std::pair(40U, 7U), std::pair(24U, 6U), std::pair(4U, 2U)}) {
    CreditSettings settings = segments(budget);
    settings.round_bytes = 7 * kSegment;
    Flows flows(settings, 1);
    flows.ask(0, 100);
    flows.pool.distribute();
    EXPECT_EQ(flows.granted(0), granted);
  }
}

}  // namespace
}  // namespace gradcube::protocol
