#include "dataplane/engine/memory/memory_quota.h"

#include <gtest/gtest.h>
#include <memory>
#include <utility>

#include "dataplane/engine/memory/session_region.h"

namespace gradcube::dataplane {
namespace {

using Charge = MemoryQuota::Charge;

TEST(MemoryQuota, LimitsWhatTheSessionsOfAUserHoldTogether) {
  MemoryQuota quota(100);
  Charge first(quota, 7);
  Charge second(quota, 7);
  EXPECT_TRUE(first.set(60));
  EXPECT_FALSE(second.set(41));
  EXPECT_EQ(second.bytes(), 0u);
  EXPECT_TRUE(second.set(40));
  EXPECT_EQ(quota.used(7), 100u);
  EXPECT_FALSE(first.may_hold(61));
  EXPECT_TRUE(first.set(10));
  EXPECT_TRUE(second.set(90));
}

TEST(MemoryQuota, IsEachUsersOwn) {
  MemoryQuota quota(100);
  Charge first(quota, 7);
  Charge second(quota, 8);
  EXPECT_TRUE(first.set(100));
  EXPECT_TRUE(second.set(100));
  EXPECT_EQ(quota.users(), (std::map<uid_t, std::uint64_t>{{7, 100}, {8, 100}}));
}

TEST(MemoryQuota, RefusesWhatWouldOverflow) {
  MemoryQuota quota(100);
  Charge first(quota, 7);
  Charge second(quota, 7);
  EXPECT_TRUE(first.set(1));
  EXPECT_FALSE(second.set(UINT64_MAX));
  EXPECT_FALSE(second.may_hold(UINT64_MAX - 1));
}

TEST(MemoryQuota, GetsBackWhatAChargeHeldOnce) {
  MemoryQuota quota(100);
  {
    Charge charge(quota, 7);
    EXPECT_TRUE(charge.set(50));
    const Charge moved(std::move(charge));
    EXPECT_EQ(moved.bytes(), 50u);
    EXPECT_EQ(quota.used(7), 50u);
  }
  EXPECT_TRUE(quota.users().empty());
}

TEST(MemoryQuota, GetsBackWhatARegionHeldWhenItEnds) {
  MemoryQuota quota(1 << 20);
  auto region = std::make_unique<SessionRegion>(1 << 20, Charge(quota, 7));
  EXPECT_TRUE(region->charge().set(4096));
  EXPECT_EQ(quota.used(7), 4096u);
  region.reset();
  EXPECT_EQ(quota.used(7), 0u);
}

TEST(MemoryQuota, DoesNotLimitARegionWithoutOne) {
  Charge charge;
  EXPECT_TRUE(charge.set(UINT64_MAX));
  EXPECT_EQ(charge.bytes(), UINT64_MAX);
}

}  // namespace
}  // namespace gradcube::dataplane
