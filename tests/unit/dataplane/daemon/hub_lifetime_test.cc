// What trainers are told of the hub that they wish for.

#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/held_memory.h"
#include "tests/unit/dataplane/daemon/hub_lifetimes_fixture.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"
#include "tests/unit/dataplane/engine/small_hub.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

using testing::IsEmpty;

TEST_F(HubLifetimes, AreMadeForTheFirstWishAndGivenToAll) {
  ask(0, wish());
  ask(1, wish());
  EXPECT_EQ(life_.hub(), nullptr) << "it is made elsewhere, and used in work()";
  const std::vector<HubAnswer> told = answers(2);
  ASSERT_EQ(told.size(), 2U);
  ASSERT_NE(life_.hub(), nullptr);
  EXPECT_EQ(used_, 1U);
  EXPECT_EQ(life_.hub()->number(), 1U);
  EXPECT_EQ(life_.hub()->model().keys(), small_keys());
  for (const unsigned local : {0U, 1U}) {
    EXPECT_EQ(told[local].local, local);
    EXPECT_EQ(told[local].number, 1U);
    EXPECT_EQ(told[local].code, GRADCUBE_OK) << told[local].text;
    EXPECT_EQ(told[local].bytes, 256U + 128U) << "each key begins at a multiple of 64";
    EXPECT_EQ(told[local].descriptor, life_.hub()->memory().descriptor());
  }
  EXPECT_THAT(work(), IsEmpty()) << "all are told once";
}

TEST_F(HubLifetimes, AreGivenToWhoAsksForThemLater) {
  ask(1, wish());
  answers();
  ask(0, wish());
  EXPECT_TRUE(life_.waits(0));
  const std::vector<HubAnswer> told = answers();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].local, 0U);
  EXPECT_EQ(told[0].code, GRADCUBE_OK);
  EXPECT_EQ(used_, 1U);
  EXPECT_FALSE(life_.waits(0));
}

// It is read by a thread of the making, and by none afterwards.
TEST_F(HubLifetimes, AreMadeFromTheMemoryOfATrainerThatHasGone) {
  const std::string table = hub_table(small_keys());
  auto region = std::make_shared<SessionRegion>(1 << 20);
  std::memcpy(region->base() + shared::kHeapOffset, table.data(), table.size());
  const std::weak_ptr<SessionRegion> still_there = region;
  HubWish from_memory = wish();
  from_memory.table =
      HubTableSource(std::exchange(region, nullptr), shared::kHeapOffset, table.size());
  ask(0, std::exchange(from_memory, {}));
  EXPECT_EQ(answers()[0].code, GRADCUBE_OK);
  EXPECT_EQ(life_.hub()->model().keys(), small_keys());
  EXPECT_EQ(*life_.table(), table);
  EXPECT_TRUE(still_there.expired());
}

TEST_F(HubLifetimes, ThatEndBeforeWhoAskedLaterIsToldAreToldToThemOnce) {
  ask(0, wish());
  answers();
  ask(1, wish());
  ask(2, wish());
  life_.end(GRADCUBE_EPEER, "a trainer has died");
  const std::vector<HubAnswer> told = work();
  ASSERT_EQ(told.size(), 2U);
  for (const HubAnswer& answer : told) expect_refused(answer, GRADCUBE_EPEER, "has died");
  for (int i = 0; i < 100; ++i) EXPECT_THAT(work(), IsEmpty());
}

TEST_F(HubLifetimes, AreOnOneLaneForAllTrainersOfAServer) {
  ask(0, wish());
  answers();
  HubWish other_lane = wish();
  other_lane.lane = 1;
  ask(1, other_lane);
  expect_one_refused(GRADCUBE_EMISMATCH, "another trainer of this server");
}

// Whoever lies about its keys gets what the others made.
TEST_F(HubLifetimes, HaveTheTableOfWhoAskedFirst) {
  ask(0, wish());
  ask(1, wish(1, table_of(7)));
  for (const HubAnswer& answer : answers(2)) EXPECT_EQ(answer.code, GRADCUBE_OK);
  EXPECT_EQ(life_.hub()->model().keys(), small_keys());
}

TEST_F(HubLifetimes, AreOneAtATime) {
  ask(0, wish(1));
  answers();
  ask(0, wish(2));
  expect_one_refused(GRADCUBE_EINVAL, "free it first");
  EXPECT_EQ(life_.hub()->number(), 1U);
}

TEST_F(HubLifetimes, AreOverWhenTheyHaveEndedAndCanBeFollowedByOthers) {
  ask(0, wish(3));
  answers();
  life_.end(GRADCUBE_EINVAL, "it was freed");
  EXPECT_EQ(life_.hub(), nullptr);
  EXPECT_THAT(work(), IsEmpty()) << "nobody waits";
  for (const std::uint32_t number : {1U, 3U}) {
    ask(0, wish(number));
    const std::vector<HubAnswer> told = work();
    ASSERT_EQ(told.size(), 1U);
    expect_refused(told[0], GRADCUBE_EINVAL, "is over");
    EXPECT_EQ(told[0].number, number);
  }
  ask(0, wish(4));
  const std::vector<HubAnswer> told = answers();
  EXPECT_EQ(told[0].code, GRADCUBE_OK) << told[0].text;
  EXPECT_EQ(life_.hub()->number(), 4U);
}

TEST_F(HubLifetimes, AreToldOnlyWhenOthersHaveWhatTheyNeedOfThem) {
  bool whole = false;
  is_whole = [&whole](const ServerHub&) { return whole; };
  ask(0, wish());
  while (used_ == 0) EXPECT_THAT(work(), IsEmpty());
  for (int i = 0; i < 100; ++i) EXPECT_THAT(work(), IsEmpty());
  whole = true;
  const std::vector<HubAnswer> told = work();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].code, GRADCUBE_OK);
}

TEST_F(HubLifetimes, ThatCannotBeForOthersAreToldAlsoToWhoAsksLater) {
  is_whole = [](const ServerHub&) { return false; };
  ask(0, wish());
  while (used_ == 0) EXPECT_THAT(work(), IsEmpty());
  life_.fail(GRADCUBE_ENOMEM, "server [2] has not the memory");
  expect_one_refused(GRADCUBE_ENOMEM, "has not the memory");
  EXPECT_EQ(life_.hub(), nullptr);
  ask(1, wish());
  expect_one_refused(GRADCUBE_ENOMEM, "has not the memory");
}

TEST_F(HubLifetimes, ThatEndWhileTheyAreMadeAreToldToThoseWhoWait) {
  ask(0, wish());
  ask(1, wish());
  life_.end(GRADCUBE_EPEER, "a trainer has died");
  const std::vector<HubAnswer> told = work();
  ASSERT_EQ(told.size(), 2U);
  for (const HubAnswer& answer : told) expect_refused(answer, GRADCUBE_EPEER, "has died");
  for (int i = 0; i < 100; ++i) EXPECT_THAT(work(), IsEmpty());
  EXPECT_EQ(used_, 0U);
  EXPECT_EQ(life_.hub(), nullptr);
}

TEST_F(HubLifetimes, ThatAreMadeAreOverWhenANewerOneIsWishedFor) {
  ask(0, wish(1));
  ask(1, wish(2, table_of(7)));
  const std::vector<HubAnswer> told = answers(2);
  ASSERT_EQ(told[0].local, 0U);
  expect_refused(told[0], GRADCUBE_EINVAL, "hub 1 of the job is over");
  EXPECT_EQ(told[1].local, 1U);
  EXPECT_EQ(told[1].number, 2U);
  EXPECT_EQ(told[1].code, GRADCUBE_OK) << told[1].text;
  EXPECT_EQ(used_, 1U);
  EXPECT_EQ(life_.hub()->number(), 2U);
}

// What was given up takes a thread and memory until it is found to be idle.
TEST_F(HubLifetimes, AreNotMadeWithoutBoundForWhoWaitsForNone) {
  const auto region = std::make_shared<SessionRegion>(1 << 20);
  const std::string table = hub_table(small_keys());
  std::memcpy(region->base() + shared::kHeapOffset, table.data(), table.size());
  HeldMemory tables(region->base() + shared::kHeapOffset, 4096);  // so that all threads are busy
  for (std::uint32_t number = 1; number <= 50; ++number) {
    HubWish unread = wish(number);
    unread.table = HubTableSource(region, shared::kHeapOffset, table.size());
    ask(0, unread);
    life_.end(GRADCUBE_EINVAL, "it was freed");
  }
  unsigned busy = 0;
  for (const HubAnswer& answer : work()) busy += answer.code == GRADCUBE_EAGAIN ? 1 : 0;
  EXPECT_GE(busy, 40U);
  EXPECT_LT(busy, 50U);
  tables.release();
  for (std::uint32_t number = 51;; ++number) {
    ask(0, wish(number));
    const std::vector<HubAnswer> told = answers();
    ASSERT_EQ(told.size(), 1U);
    if (told[0].code == GRADCUBE_OK) break;
    ASSERT_EQ(told[0].code, GRADCUBE_EAGAIN) << told[0].text;
    std::this_thread::yield();
  }
  EXPECT_EQ(used_, 1U);
  end_makings();  // some may still read their tables
}

TEST_F(HubLifetimes, AreRefusedWithWhatIsWrongWithTheirTable) {
  ask(0, wish(1, "rubbish"));
  expect_one_refused(GRADCUBE_EINVAL, "malformed");
  ask(1, wish(1));
  expect_one_refused(GRADCUBE_EINVAL, "malformed");  // who asks later is told the same
  EXPECT_EQ(life_.hub(), nullptr);
  EXPECT_EQ(quota_.used(kUser), 0U);
  ask(0, wish(2));
  EXPECT_EQ(answers()[0].code, GRADCUBE_OK);
}

TEST_F(HubLifetimes, AreKnownByTheTrainersThatHaveFreedThem) {
  ask(0, wish());
  ask(1, wish());
  answers(2);
  life_.freed_by(1);
  EXPECT_TRUE(life_.is_freed_by(1));
  EXPECT_FALSE(life_.is_freed_by(0));
  life_.end(GRADCUBE_EINVAL, "it was freed");
  ask(0, wish(2));
  answers();
  EXPECT_FALSE(life_.is_freed_by(1)) << "the next one";
}

}  // namespace
}  // namespace gradcube::dataplane
