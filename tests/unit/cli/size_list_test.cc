#include "cli/size_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using testing::ElementsAre;

TEST(SizeList, ReadsDecimalSuffixesFractionsAndZero) {
  EXPECT_THAT(parse_size_list("1K,64K,12.5M"), ElementsAre(1000, 64000, 12500000));
  EXPECT_THAT(parse_size_list("0"), ElementsAre(0));
  EXPECT_THAT(parse_size_list("1,7,97M"), ElementsAre(1, 7, 97000000));
}

TEST(SizeList, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", ",", "1K,", ",1K", "1K,,2K", "1Q", "-1", "K", "1.2.3M", "nan", "1e400"}) {
    EXPECT_THROW(parse_size_list(text), control::UsageError) << text;
  }
}

}  // namespace
}  // namespace gradcube::cli
