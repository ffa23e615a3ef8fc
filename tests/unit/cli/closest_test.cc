#include <gtest/gtest.h>

#include "cli/text/parse_error.h"

namespace gradcube::cli {
namespace {

const std::vector<std::string> kFlags = {"--rate", "--topology", "--loss", "--mtu"};

TEST(Closest, FindsAWordInsertedRemovedOrReplacedLettersAway) {
  EXPECT_EQ(closest("--topolgy", kFlags), "--topology");
  EXPECT_EQ(closest("--topologyy", kFlags), "--topology");
  EXPECT_EQ(closest("--rote", kFlags), "--rate");
  EXPECT_EQ(closest("--rate", kFlags), "--rate");
}

TEST(Closest, GuessesNothingFarAway) {
  EXPECT_EQ(closest("--delay", kFlags), std::nullopt);
  EXPECT_EQ(closest("", kFlags), std::nullopt);
  EXPECT_EQ(closest("-x", kFlags), std::nullopt);
  EXPECT_EQ(closest("--rate", {}), std::nullopt);
  EXPECT_EQ(closest(std::string(1'000'000, 'x'), kFlags), std::nullopt);
}

}  // namespace
}  // namespace gradcube::cli
