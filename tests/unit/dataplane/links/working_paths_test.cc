// What an engine knows of paths, without the engine: server [0,0] of bcube:3,2.

#include "dataplane/links/working_paths.h"

#include <array>
#include <gtest/gtest.h>

#include "bcube_forwarding/route.h"

namespace gradcube::dataplane {
namespace {

class WorkingPathsTest : public testing::Test {
 protected:
  bcube::Route planned(bcube::ServerId to) const { return bcube::shortest_route(space_, 0, to); }
  // Server 1's link to server 7.
  static protocol::ParsedFrame failure_at_a_relay() {
    protocol::ParsedFrame notice;
    notice.routing.source = 1;
    notice.link = {1, 1, 2, false};
    return notice;
  }
  void set(bcube::Hop link, bool up, bool heard) {
    links_.set(link, up, heard);
    links_.publish();
  }

  static constexpr std::array<unsigned, 2> kRadices = {3, 3};
  bcube::AddressSpace space_{kRadices};
  bcube::NeighbourTable neighbours_{space_, 0};
  ServerLinks links_{space_};
  WorkingPaths paths_{neighbours_, links_};
};

TEST_F(WorkingPathsTest, LeaveThroughAnotherPortFirstWhereTheLinkIsDown) {
  EXPECT_EQ(paths_.best(planned(1), 1), planned(1));
  set({0, 1}, false, false);
  const bcube::Route around = paths_.best(planned(1), 1);
  ASSERT_GT(around.size(), 1u);
  EXPECT_EQ(around[0].level, 1);
  EXPECT_TRUE(paths_.works(around));
}

TEST_F(WorkingPathsTest, AreThePlannedOneWhereNoneWorksAndItsFirstLinkIsHeard) {
  for (const bcube::Hop link : {bcube::Hop{0, 1}, {0, 2}, {1, 1}, {1, 2}}) set(link, false, true);
  EXPECT_TRUE(paths_.to(1).empty());
  EXPECT_EQ(paths_.best(planned(1), 1), planned(1));
}

TEST_F(WorkingPathsTest, AvoidWhatARelayHasToldOfUntilThatIsForgotten) {
  ASSERT_EQ(planned(7)[0].level, 0) << "over server 1";
  EXPECT_FALSE(paths_.have_changed(0));
  EXPECT_TRUE(paths_.take_failure(failure_at_a_relay(), 0));
  EXPECT_TRUE(paths_.have_changed(protocol::kMillisecond));
  EXPECT_EQ(paths_.best(planned(7), 7)[0].level, 1);
  EXPECT_FALSE(paths_.have_changed(2 * protocol::kMillisecond));
  EXPECT_EQ(paths_.next_change(), FailedHops::kKept);
  EXPECT_TRUE(paths_.have_changed(FailedHops::kKept));
  EXPECT_EQ(paths_.best(planned(7), 7), planned(7));
}

TEST_F(WorkingPathsTest, ChangeOnceInAMillisecondHoweverMuchIsTold) {
  EXPECT_TRUE(paths_.take_failure(failure_at_a_relay(), 5 * protocol::kMillisecond));
  EXPECT_TRUE(paths_.have_changed(5 * protocol::kMillisecond));
  protocol::ParsedFrame another = failure_at_a_relay();
  another.link.digit = 1;
  EXPECT_TRUE(paths_.take_failure(another, 5 * protocol::kMillisecond + 1));
  EXPECT_FALSE(paths_.have_changed(5 * protocol::kMillisecond + 1));
  EXPECT_TRUE(paths_.have_changed(6 * protocol::kMillisecond));
}

}  // namespace
}  // namespace gradcube::dataplane
