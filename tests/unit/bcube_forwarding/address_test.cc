#include "bcube_forwarding/address.h"

#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace gradcube::bcube {
namespace {

AddressSpace space_of(std::vector<unsigned> radices) { return AddressSpace(radices); }

std::string message_of(const AddressSpace& space, const std::string& text) {
  try {
    space.parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(AddressSpace, ReadsAServersNumberAsItsDigitsLevelZeroLeastSignificant) {
  const AddressSpace space = space_of({3, 3});
  EXPECT_EQ(space.servers(), 9u);
  EXPECT_EQ(space.digit(7, 0), 1u);
  EXPECT_EQ(space.digit(7, 1), 2u);
  EXPECT_EQ(space.text(7), "[2,1]");
  EXPECT_EQ(space.suffix(7), "2-1");
}

TEST(AddressSpace, NamesASwitchByWhatItsServersShare) {
  const AddressSpace space = space_of({3, 3, 2});
  for (const ServerId server : {7u, 8u, 6u}) EXPECT_EQ(space.joint_text(server, 0), "0/[0,2,*]");
  EXPECT_EQ(space.joint_text(7, 1), "1/[0,*,1]");
  EXPECT_EQ(space.joint_text(7 + 9, 2), "2/[*,2,1]");
}

TEST(AddressSpace, GivesEveryLevelItsOwnRadix) {
  const AddressSpace space = space_of({2, 3, 5});
  EXPECT_EQ(space.servers(), 30u);
  EXPECT_EQ(space.text(29), "[4,2,1]");
  std::set<std::string> texts;
  for (ServerId server = 0; server < space.servers(); ++server) {
    texts.insert(space.text(server));
    EXPECT_EQ(space.parse(space.text(server)), server);
  }
  EXPECT_EQ(texts.size(), 30u);
}

TEST(AddressSpace, ReplacesOneDigitAndKeepsTheOthers) {
  const AddressSpace space = space_of({4, 2, 3});
  for (ServerId server = 0; server < space.servers(); ++server) {
    for (unsigned level = 0; level < 3; ++level) {
      for (unsigned digit = 0; digit < space.radix(level); ++digit) {
        const ServerId other = space.with_digit(server, level, digit);
        for (unsigned l = 0; l < 3; ++l) {
          EXPECT_EQ(space.digit(other, l), l == level ? digit : space.digit(server, l));
        }
      }
    }
  }
}

TEST(AddressSpace, ReadsAddressesWithAndWithoutBrackets) {
  const AddressSpace space = space_of({3, 3});
  EXPECT_EQ(space.parse("2,1"), 7u);
  EXPECT_EQ(space.parse("[2,1]"), 7u);
}

TEST(AddressSpace, RefusesWhatIsNoAddressWithAMessage) {
  const AddressSpace space = space_of({3, 3});
  for (const char* text : {"", "2", "2,", ",1", "2,1,0", "2;1", "a,b", "[2,1", "2,1]", " 2,1",
                           "2, 1", "-1,0", "+1,0", "2,1 "}) {
    EXPECT_NE(message_of(space, text), "") << text;
  }
  EXPECT_EQ(message_of(space, "3,1"),
            "\"3,1\" is not a server's address: its digit at level 1 must be 0..2, for example "
            "2,2");
  EXPECT_EQ(message_of(space, "1"),
            "\"1\" is not a server's address: expected 2 digits separated by commas, the "
            "highest level first, for example 2,2");
  EXPECT_NE(message_of(space, "99999999999999999999,0"), "");
  for (const char* text : {"", "a", "9", "1,0", "99999999999999999999"}) {
    EXPECT_EQ(
        message_of(space_of({9}), text),
        std::string("\"") + text + "\" is not a server's address: expected a number from 0 to 8");
  }
}

TEST(AddressSpace, HoldsUpTo65536ServersAndNoMore) {
  EXPECT_EQ(space_of({16, 16, 16, 16}).servers(), 65536u);
  EXPECT_EQ(space_of({256, 256}).text(65535), "[255,255]");
  EXPECT_THROW(space_of({256, 256, 2}), std::invalid_argument);
  EXPECT_THROW(space_of({257}), std::invalid_argument);
  EXPECT_THROW(space_of({3, 1}), std::invalid_argument);
  EXPECT_THROW(space_of({}), std::invalid_argument);
  EXPECT_THROW(space_of(std::vector<unsigned>(9, 2)), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::bcube
