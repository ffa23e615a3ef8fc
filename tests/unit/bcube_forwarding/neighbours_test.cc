#include "bcube_forwarding/neighbours.h"

#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace gradcube::bcube {
namespace {

const AddressSpace kSpace(std::vector<unsigned>{3, 4});

TEST(Neighbours, AreTheServersInOneAnothersTables) {
  for (ServerId one = 0; one < kSpace.servers(); ++one) {
    const NeighbourTable table(kSpace, one);
    for (ServerId other = 0; other < kSpace.servers(); ++other) {
      EXPECT_EQ(are_neighbours(kSpace, one, other),
                table.is_behind(0, other) || table.is_behind(1, other))
          << one << " and " << other;
    }
  }
}

TEST(Neighbours, DifferInOneDigitOnly) {
  const AddressSpace space(std::vector<unsigned>{2, 2, 2});
  EXPECT_TRUE(are_neighbours(space, space.parse("0,1,0"), space.parse("1,1,0")));
  EXPECT_TRUE(are_neighbours(space, space.parse("0,1,0"), space.parse("0,1,1")));
  EXPECT_FALSE(are_neighbours(space, space.parse("0,1,0"), space.parse("0,1,0")));
  EXPECT_FALSE(are_neighbours(space, space.parse("0,1,0"), space.parse("1,0,0")));
  EXPECT_FALSE(are_neighbours(space, space.parse("0,1,0"), space.parse("1,0,1")));
}

TEST(NextInLines, AreAllOthersOfASwitch) {
  const auto at = [](const char* text) { return kSpace.parse(text); };
  EXPECT_EQ(
      next_in_lines(kSpace, at("1,1"), {at("0,1"), at("1,0"), at("1,1"), at("3,1"), at("2,2")}),
      (std::vector<ServerId>{at("0,1"), at("1,0"), at("3,1")}));
  EXPECT_TRUE(next_in_lines(kSpace, at("1,1"), {at("1,1"), at("0,0")}).empty());
}

TEST(NextInLines, AreTheNearestInEachDirectionOfARing) {
  const AddressSpace ring(std::vector<unsigned>{6}, Joint::cables);
  const std::vector<ServerId> servers = {0, 1, 4, 5};
  EXPECT_EQ(next_in_lines(ring, 0, servers), (std::vector<ServerId>{1, 5}));
  EXPECT_EQ(next_in_lines(ring, 1, servers), (std::vector<ServerId>{0, 4}));
  EXPECT_EQ(next_in_lines(ring, 4, servers), (std::vector<ServerId>{1, 5}));
  EXPECT_EQ(next_in_lines(ring, 0, {0, 3}), (std::vector<ServerId>{3})) << "both ways lead to it";
}

TEST(NeighbourTable, HasOneRowForEachOtherDigitOfEachLevel) {
  for (ServerId self = 0; self < kSpace.servers(); ++self) {
    const NeighbourTable table(kSpace, self);
    for (unsigned level = 0; level < 2; ++level) {
      ASSERT_EQ(table.behind(level).size(), kSpace.radix(level) - 1);
      for (unsigned digit = 0; digit < kSpace.radix(level); ++digit) {
        const Neighbour* row = table.find(level, digit);
        if (digit == kSpace.digit(self, level)) {
          EXPECT_EQ(row, nullptr);
          continue;
        }
        ASSERT_NE(row, nullptr);
        EXPECT_EQ(row->server, kSpace.with_digit(self, level, digit));
        EXPECT_EQ(row->level, level);
        EXPECT_EQ(row->digit, digit);
        EXPECT_EQ(row->port, level);
      }
    }
  }
}

TEST(NeighbourTable, ListsALevelsNeighboursByAscendingDigit) {
  const NeighbourTable table(kSpace, kSpace.parse("2,1"));
  std::vector<unsigned> digits;
  for (const Neighbour& neighbour : table.behind(1)) digits.push_back(neighbour.digit);
  EXPECT_EQ(digits, (std::vector<unsigned>{0, 1, 3}));
}

TEST(NeighbourTable, AnswersAnyBytesOfAHopWithoutARow) {
  const NeighbourTable table(kSpace, 0);
  for (unsigned level = 0; level < 256; ++level) {
    for (unsigned digit = 0; digit < 256; ++digit) {
      const bool valid = level < 2 && digit > 0 && digit < kSpace.radix(level);
      EXPECT_EQ(table.find(level, digit) != nullptr, valid);
    }
  }
}

TEST(NeighbourTable, TellsNeighboursFromAllOtherServers) {
  const ServerId self = kSpace.parse("1,2");
  const NeighbourTable table(kSpace, self);
  for (unsigned level = 0; level < 4; ++level) {
    for (ServerId server = 0; server < 300; ++server) {
      const bool expected = level < 2 && server < 12 && server != self &&
                            kSpace.digit(server, 1 - level) == kSpace.digit(self, 1 - level);
      EXPECT_EQ(table.is_behind(level, server), expected) << level << " " << server;
    }
  }
}

TEST(NeighbourTable, RefusesAServerOutsideTheSpace) {
  EXPECT_THROW(NeighbourTable(kSpace, 12), std::invalid_argument);
}

TEST(NeighbourTable, RefusesASpaceWhosePortsHaveNoAddresses) {
  const AddressSpace most(std::vector<unsigned>{64, 128});
  EXPECT_EQ(NeighbourTable(most, 0).behind(1).size(), 127u);
  const AddressSpace more(std::vector<unsigned>{64, 129});
  try {
    const NeighbourTable table(more, 0);
    FAIL() << "it was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "the ports of 8256 servers have no IPv4 addresses: 198.18.0.0/15 has room for "
                 "those of 8192");
  }
}

TEST(EmbeddedLinkAddress, CarriesPortAndServer) {
  const LinkAddress address = embedded_link_address(3, 0x0bcd);
  EXPECT_EQ(address.mac, (std::array<uint8_t, 6>{0x02, 0x47, 3, 0, 0x0b, 0xcd}));
  EXPECT_EQ(address.ip, 0xc6126bcdu);  // 198.18.107.205
}

TEST(EmbeddedLinkAddress, IsOfTheNetworkForMeasurementsAndUniquePerPort) {
  std::set<std::uint32_t> all;
  for (unsigned port = 0; port < 2 * kMaxLevels; ++port) {
    for (ServerId server = 0; server < kMaxAddressedServers; ++server) {
      const std::uint32_t ip = embedded_link_address(port, server).ip;
      ASSERT_EQ(ip >> 17, 0xc6120000u >> 17) << port << " " << server;
      ASSERT_TRUE(all.insert(ip).second) << port << " " << server;
    }
  }
}

}  // namespace
}  // namespace gradcube::bcube
