#include "protocol/index_set.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

TEST(IndexSet, IsEmptyAtFirstAndHasNoNextMember) {
  IndexSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.next(0), 0u);
  set.resize(130);
  EXPECT_EQ(set.size(), 130u);
  EXPECT_EQ(set.next(0), 130u);
  EXPECT_EQ(set.next(130), 130u);
  EXPECT_EQ(set.next(1000), 130u);
}

TEST(IndexSet, CountsAMemberOnceHoweverOftenItIsInsertedAndErased) {
  IndexSet set;
  set.resize(10);
  set.insert(3);
  set.insert(3);
  EXPECT_EQ(set.count(), 1u);
  set.erase(4);
  EXPECT_EQ(set.count(), 1u);
  set.erase(3);
  set.erase(3);
  EXPECT_TRUE(set.empty());
}

TEST(IndexSet, KeepsItsMembersWhenItGrows) {
  IndexSet set;
  set.resize(1);
  set.insert(0);
  set.resize(65);
  EXPECT_TRUE(set.contains(0));
  EXPECT_FALSE(set.contains(64));
  set.insert(64);
  EXPECT_EQ(set.next(1), 64u);
  set.clear();
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.size(), 65u);
  EXPECT_EQ(set.next(0), 65u);
}

TEST(IndexSet, FindsTheMembersOfAStdSetInTheirOrder) {
  const std::uint64_t seed = test_seed(50);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (const std::size_t size : {1U, 63U, 64U, 65U, 200U, 1000U, 4096U, 4097U, 30'000U}) {
    IndexSet set;
    set.resize(size);
    std::set<std::size_t> model;
    for (unsigned turn = 0; turn < 2000; ++turn) {
      // Many of the same ones, so that words and groups of them become empty again.
      const std::size_t index = random() % 2 == 0 ? random() % size : (size - 1) / (1 + turn % 7);
      if (random() % 500 == 0) {
        set.clear();
        model.clear();
      } else if (random() % 2 == 0) {
        set.insert(index);
        model.insert(index);
      } else {
        set.erase(index);
        model.erase(index);
      }
      const std::size_t from = random() % (size + 1);
      const auto next = model.lower_bound(from);
      ASSERT_EQ(set.next(from), next == model.end() ? size : *next);
      ASSERT_EQ(set.contains(index), model.contains(index));
      ASSERT_EQ(set.count(), model.size());
      ASSERT_EQ(set.empty(), model.empty());
    }
  }
}

}  // namespace
}  // namespace gradcube::protocol
