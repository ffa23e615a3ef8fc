// What trainers find out when they compare their memory, without a daemon between them.
#include "trainer/src/session/comparison.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gradcube::trainer {
namespace {

std::string difference_of(const std::vector<std::string>& memories) {
  std::vector<std::byte> digests(memories.size() * kDigestBytes);
  for (std::size_t rank = 0; rank < memories.size(); ++rank) {
    write_digest(std::as_bytes(std::span(memories[rank])), digests.data() + rank * kDigestBytes);
  }
  return find_difference(digests);
}

TEST(Comparison, FindsNothingWhereAllAreTheSame) {
  EXPECT_EQ(difference_of({"abc", "abc", "abc"}), "");
  EXPECT_EQ(difference_of({"", ""}), "");
  EXPECT_EQ(difference_of({"alone"}), "");
}

TEST(Comparison, NamesTheRanksThatDifferFromMost) {
  EXPECT_EQ(difference_of({"abc", "abd", "abc"}),
            "rank 1 differs from the other 2, which have 3 bytes");
  EXPECT_EQ(difference_of({"x", "a", "a", "y", "a", "a", "x"}),
            "ranks 0 and 6, rank 3 differ from the other 4, which have 1 bytes");
}

TEST(Comparison, TellsOfOtherLengths) {
  EXPECT_EQ(difference_of({"aa", "aa", "a", ""}),
            "there are 3 contents, that of ranks 0 and 1 (2 bytes), of rank 2 (1 bytes), of rank 3 "
            "(0 bytes)");
  EXPECT_EQ(difference_of({std::string(3, '\0'), std::string(4, '\0'), std::string(3, '\0')}),
            "rank 1 (4 bytes) differs from the other 2, which have 3 bytes");
}

TEST(Comparison, TakesNoSideBetweenTwoHalves) {
  EXPECT_EQ(difference_of({"a", "b", "b", "a"}),
            "there are 2 contents, that of ranks 0 and 3 (1 bytes), of ranks 1 and 2 (1 bytes)");
}

TEST(Comparison, CountsRanksThatItDoesNotName) {
  std::vector<std::string> memories(100, "same");
  for (std::size_t rank = 0; rank < 40; ++rank) memories[rank] = std::string(5, char(rank));
  EXPECT_NE(difference_of(memories).find(" and 25 more ranks differ from the other 60"),
            std::string::npos)
      << difference_of(memories);
  for (std::size_t rank = 0; rank < 100; ++rank) memories[rank] = std::string(5, char(rank));
  EXPECT_NE(difference_of(memories).find("there are 100 contents"), std::string::npos);
  EXPECT_NE(difference_of(memories).find(" and 84 more ranks"), std::string::npos);
}

TEST(Comparison, SeesEachBit) {
  for (const std::size_t length : {1U, 8U, 17U, 240U, 241U, 1000U, 4096U}) {
    const std::string memory(length, 'm');
    for (std::size_t at = 0; at < length; at += 1 + length / 16) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::string other = memory;
        other[at] = static_cast<char>(other[at] ^ (1 << bit));
        EXPECT_NE(difference_of({memory, other, memory}), "") << length << " " << at << " " << bit;
      }
    }
  }
}

TEST(Comparison, NamesSixteenRanksAtMost) {
  std::vector<std::string> memories(100, "same");
  for (std::size_t rank = 0; rank < 40; ++rank) memories[rank] = "other";
  EXPECT_EQ(difference_of(memories),
            "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 24 more (5 bytes) "
            "differ from the other 60, which have 4 bytes");
}

}  // namespace
}  // namespace gradcube::trainer
