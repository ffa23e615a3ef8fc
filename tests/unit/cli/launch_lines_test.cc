#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "cli/launch/launch_text.h"

namespace gradcube::cli {
namespace {

// What comes out if the pieces come one after the other, and then the end.
std::string marked(const std::string& mark, const std::vector<std::string>& pieces) {
  LaunchLines lines(mark);
  std::string out;
  for (const std::string& piece : pieces) lines.take(piece, &out);
  lines.finish(&out);
  return out;
}

TEST(LaunchLines, MarksEachLine) {
  EXPECT_EQ(marked("[3] ", {"one\ntwo\n\nfour\n"}), "[3] one\n[3] two\n[3] \n[3] four\n");
}

TEST(LaunchLines, KeepsALineUntilItEnds) {
  LaunchLines lines("[0] ");
  std::string out;
  lines.take("be", &out);
  lines.take("gin", &out);
  EXPECT_EQ(out, "");
  lines.take(" end\nnext", &out);
  EXPECT_EQ(out, "[0] begin end\n");
  lines.finish(&out);
  EXPECT_EQ(out, "[0] begin end\n[0] next\n");
}

TEST(LaunchLines, AddNothingToAnEndedStream) {
  EXPECT_EQ(marked("[0] ", {}), "");
  EXPECT_EQ(marked("[0] ", {"", "one\n", ""}), "[0] one\n");
}

TEST(LaunchLines, ChangeNoByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != '\n' && byte != '\r') all.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(marked("[12] ", {all + "\n"}), "[12] " + all + "\n");
}

TEST(LaunchLines, PassAProgressBarOnAsItMoves) {
  LaunchLines lines("[1] ");
  std::string out;
  lines.take("\r10%\r20%", &out);
  EXPECT_EQ(out, "\r[1] 10%\r");
  lines.take("\n", &out);
  EXPECT_EQ(out, "\r[1] 10%\r[1] 20%\n");
}

TEST(LaunchLines, TakeReturnAndNewlineForOneEndWhereverTheyAreCut) {
  const std::string expected = "[1] one\r\n[1] two\r\n";
  EXPECT_EQ(marked("[1] ", {"one\r\ntwo\r\n"}), expected);
  EXPECT_EQ(marked("[1] ", {"one\r", "\ntwo", "\r", "\n"}), expected);
}

TEST(LaunchLines, ALineWithoutAnEndIsPassedOnInPieces) {
  const std::string piece(LaunchLines::kLongestLine, 'x');
  LaunchLines lines("[0] ");
  std::string out;
  for (int i = 0; i < 3; ++i) {
    lines.take(std::string_view(piece).substr(0, piece.size() - 1), &out);
    out.clear();
    lines.take("x", &out);
    EXPECT_EQ(out, "[0] " + piece + "\n");
  }
  EXPECT_EQ(marked("[0] ", {piece + piece + "y\n"}), "[0] " + piece + piece + "y\n")
      << "one that has an end is whole";
}

TEST(LaunchLines, WithoutAMarkNothingIsAdded) {
  std::mt19937 random(1);
  std::string all;
  std::vector<std::string> pieces;
  for (int i = 0; i < 500; ++i) {
    std::string piece;
    for (std::size_t left = random() % 1000; left > 0; --left) {
      piece.push_back(
          "\r\n\xff"
          "abc"[random() % 6]);
    }
    pieces.push_back(piece);
    all += piece;
  }
  pieces.emplace_back(2 * LaunchLines::kLongestLine + 7, 'z');
  EXPECT_EQ(marked("", pieces), all + pieces.back());
}

}  // namespace
}  // namespace gradcube::cli
