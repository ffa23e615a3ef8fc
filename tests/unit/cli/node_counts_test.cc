#include "cli/model/node_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NodeCounts, AreNumbersListsAndRangesThatDouble) {
  EXPECT_THAT(parse_node_counts("64", "--nodes"), ElementsAre(64));
  EXPECT_THAT(parse_node_counts("4..64", "--nodes"), ElementsAre(4, 8, 16, 32, 64));
  EXPECT_THAT(parse_node_counts("3..13", "--nodes"), ElementsAre(3, 6, 12));
  EXPECT_THAT(parse_node_counts("7..7", "--nodes"), ElementsAre(7));
  EXPECT_THAT(parse_node_counts("9,2..4,9", "--nodes"), ElementsAre(9, 2, 4, 9));
}

TEST(NodeCounts, RefuseWhatIsNoNumberOfNodes) {
  for (const char* text : {"", "1", "0..4", "x", "4..", "..4", "4..x", "4,", ",4", "4...8", "-4",
                           "4.5", "1000000001", "99999999999999999999"}) {
    EXPECT_THROW(parse_node_counts(text, "--nodes"), control::UsageError) << text;
  }
  try {
    parse_node_counts("64..4", "--nodes");
    ADD_FAILURE() << "it was taken";
  } catch (const control::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--nodes \"64..4\""));
    EXPECT_THAT(error.what(), HasSubstr("expected 4..64"));
  }
}

}  // namespace
}  // namespace gradcube::cli
