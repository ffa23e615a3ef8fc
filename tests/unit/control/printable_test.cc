#include "control/base/printable.h"

#include <gtest/gtest.h>

namespace gradcube::control {
namespace {

TEST(Printable, LeavesOrdinaryTextAsItIs) {
  EXPECT_EQ(printable("bcube:3,2"), "bcube:3,2");
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x99\x82"),
            "M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x99\x82");
  EXPECT_EQ(quoted("a b"), "\"a b\"");
}

TEST(Printable, EscapesWhatCouldMoveATerminalsCursor) {
  EXPECT_EQ(printable("a\nb\rc\td\x1b[2J\x7f"), "a\\nb\\rc\\td\\x1b[2J\\x7f");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b1m")
      << "U+009B, one more escape character";
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(printable("\xe2\x82"
                      "a"),
            "\\xe2\\x82"
            "a");
  EXPECT_EQ(printable("\x80"), "\\x80") << "a continuation alone";
}

TEST(Printable, ShortensLongTextAndSaysHowLongItWas) {
  EXPECT_EQ(printable(std::string(61, 'x')), std::string(60, 'x') + "... (61 bytes)");
  EXPECT_EQ(printable(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_LE(printable(std::string(20'000, '\x1b')).size(), 60u * 4 + 20);
}

TEST(Printable, DoesNotCutACharacterInTwo) {
  EXPECT_EQ(printable("xx\xc3\xbcy", 3), "xx\xc3\xbc... (5 bytes)");
}

TEST(Printable, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_word("/opt/cube-1.0/gradcube"), "/opt/cube-1.0/gradcube");
  EXPECT_EQ(shell_word("ssh -p 2222 {host}"), "'ssh -p 2222 {host}'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Printable, FindsTheLastLineThatSaysAnything) {
  EXPECT_EQ(last_line("one\ntwo \r\n \n\r\n"), "two");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("\n \n"), "");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace gradcube::control
