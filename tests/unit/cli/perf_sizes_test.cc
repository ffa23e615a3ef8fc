#include "cli/perf/perf_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using testing::ElementsAre;

TEST(SizeList, ReadsDecimalAndBinarySuffixesFractionsAndZero) {
  EXPECT_THAT(parse_size_list("1K,64K,12.5M"), ElementsAre(1000, 64000, 12500000));
  EXPECT_THAT(parse_size_list("1k,1Ki"), ElementsAre(1000, 1024));
  EXPECT_THAT(parse_size_list("0"), ElementsAre(0));
  EXPECT_THAT(parse_size_list("1,7,97M"), ElementsAre(1, 7, 97000000));
}

TEST(SizeList, RefusesTextsThatAreNotSizes) {
  for (const char* text :
       {"", ",", "1K,", ",1K", "1K,,2K", "1Q", "-1", "K", "1.2.3M", "nan", "1e400", "0.0000001"}) {
    EXPECT_THROW(parse_size_list(text), control::UsageError) << text;
  }
}

TEST(SizeRange, MultipliesUpToItsEnd) {
  EXPECT_THAT(sizes_of({.least = 1000, .most = 16000, .factor = 2}),
              ElementsAre(1000, 2000, 4000, 8000, 16000));
  EXPECT_THAT(sizes_of({.least = 1000, .most = 15999, .factor = 4}), ElementsAre(1000, 4000));
}

TEST(SizeRange, IsOneSizeWhereItsEndsMeet) {
  EXPECT_THAT(sizes_of({.least = 5, .most = 5}), ElementsAre(5));
  EXPECT_THAT(sizes_of({.least = 0, .most = 0}), ElementsAre(0));
}

TEST(SizeRange, EndsAtTheLargestNumbers) {
  EXPECT_THAT(sizes_of({.least = UINT64_MAX / 2, .most = UINT64_MAX, .factor = 2}),
              ElementsAre(UINT64_MAX / 2, UINT64_MAX / 2 * 2));
}

TEST(SizeRange, RefusesOneThatIsEmptyOrWouldNotEnd) {
  EXPECT_THROW(sizes_of({.least = 2, .most = 1}), control::UsageError);
  EXPECT_THROW(sizes_of({.least = 0, .most = 8}), control::UsageError);
  EXPECT_THROW(sizes_of({.least = 1, .most = 8, .factor = 1}), control::UsageError);
}

}  // namespace
}  // namespace gradcube::cli
