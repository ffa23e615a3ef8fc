// Which lengths `gradcube tune chunk` measures, and which one it names.
#include "cli/perf/chunk_search.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcube::cli {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kModel = 100'000'000;

// What a round takes with chunks of a length.
using Seconds = std::function<double(std::uint64_t)>;

ChunkSearch searched(const Seconds& seconds, std::uint64_t model = kModel) {
  ChunkSearch search(model);
  while (!search.next().empty()) {
    for (const std::uint64_t length : search.next()) search.note(length, {seconds(length)});
    search.advance();
  }
  return search;
}

// Least at `best`; one that is twice as long or half as long takes `steep` more.
Seconds valley(std::uint64_t best, double steep) {
  return [best, steep](std::uint64_t length) {
    if (length == ChunkSearch::kAuto) return 9.0;
    const double octaves =
        std::log2(static_cast<double>(length)) - std::log2(static_cast<double>(best));
    return 1 + steep * octaves * octaves;
  };
}

TEST(ChunkSearch, BeginsWithTheDefaultAndPowersOfTwo) {
  EXPECT_THAT(ChunkSearch(kModel).next(), ElementsAre(0, 8192, 16384, 32768, 65536, 131072, 262144,
                                                      524288, 1048576, 2097152, 4194304));
}

TEST(ChunkSearch, MeasuresNoChunksThatAreMuchLongerThanTheModel) {
  EXPECT_THAT(ChunkSearch(20'000).next(), ElementsAre(0, 8192, 16384, 32768));
  EXPECT_THAT(ChunkSearch(10).next(), ElementsAre(0, 8192));
}

TEST(ChunkSearch, MeasuresNoChunksOfWhichAHubCanHaveTooFew) {
  EXPECT_EQ(ChunkSearch(std::uint64_t{100} << 30).next()[1], 32768u);
}

TEST(ChunkSearch, MeasuresTheBestAgainBesideWhatIsRefined) {
  ChunkSearch search(kModel);
  for (const std::uint64_t length : search.next()) search.note(length, {valley(65536, 1)(length)});
  search.advance();
  EXPECT_THAT(search.next(), ElementsAre(0, 65536, 49152, 98304));
}

TEST(ChunkSearch, LooksBetweenTheBestPowerOfTwoAndItsNeighbours) {
  const ChunkSearch search = searched(valley(190'000, 1));
  EXPECT_NEAR(static_cast<double>(search.best()), 190'000, 10'000);
  EXPECT_EQ(search.best() % 64, 0u);
}

TEST(ChunkSearch, EndsWhereLengthsBetweenGainNothing) {
  const ChunkSearch search = searched(valley(65536, 0.001));
  EXPECT_EQ(search.best(), 65536u);
  EXPECT_LE(search.medians().size(), 11u + 2);
}

TEST(ChunkSearch, NamesTheBestAtEitherEnd) {
  EXPECT_EQ(searched(valley(8192, 1)).best(), 8192u);
  EXPECT_EQ(searched(valley(4194304, 1)).best(), 4194304u);
}

TEST(ChunkSearch, PrefersTheDefaultToWhatIsLittleBetter) {
  const auto flat = [](double standard) {
    return [standard](std::uint64_t length) {
      return length == ChunkSearch::kAuto ? standard : length == 32768 ? 1.0 : 1.5;
    };
  };
  EXPECT_EQ(searched(flat(1.009)).best(), ChunkSearch::kAuto);
  EXPECT_EQ(searched(flat(1.02)).best(), 32768u);
}

TEST(ChunkSearch, TakesTheMedianOfAllTurns) {
  ChunkSearch search(10);
  for (const double second : {5.0, 1.0, 1.2}) search.note(8192, {second});
  search.note(ChunkSearch::kAuto, {2, 2, 2});
  EXPECT_DOUBLE_EQ(search.medians().at(8192), 1.2);
}

}  // namespace
}  // namespace gradcube::cli
