#include "control/plan/neighbour_rounds.h"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>

namespace gradcube::control {
namespace {

Topology topology(const std::string& spec) { return parse_topology(spec, "the test"); }

std::size_t links_of(const std::vector<std::vector<NeighbourLink>>& rounds) {
  std::size_t links = 0;
  for (const auto& round : rounds) links += round.size();
  return links;
}

void expect_one_link_for_each_server_of_a_round(const std::string& spec) {
  for (const auto& round : neighbour_rounds(topology(spec))) {
    EXPECT_FALSE(round.empty()) << spec;
    std::set<ServerId> busy;
    for (const NeighbourLink& link : round) {
      EXPECT_EQ(link.level, round.front().level) << spec;
      EXPECT_TRUE(busy.insert(link.first).second) << spec << ": " << link.first;
      EXPECT_TRUE(busy.insert(link.second).second) << spec << ": " << link.second;
    }
  }
}

TEST(NeighbourRounds, HaveOneLinkForEachServer) {
  for (const char* spec : {"star:2", "star:3", "star:8", "star:9", "bcube:2,2", "bcube:3,2",
                           "bcube:4x3x2", "bcube:5,3", "torus:3,2", "torus:4,2", "torus:3,3"}) {
    expect_one_link_for_each_server_of_a_round(spec);
  }
}

TEST(NeighbourRounds, JoinEachPairUnderASwitchOnce) {
  const Topology bcube = topology("bcube:4x3");
  std::set<std::pair<ServerId, ServerId>> pairs;
  for (const auto& round : neighbour_rounds(bcube)) {
    for (const NeighbourLink& link : round) {
      EXPECT_LT(link.first, link.second);
      EXPECT_EQ(bcube.space().with_digit(link.first, link.level,
                                         bcube.space().digit(link.second, link.level)),
                link.second);
      EXPECT_TRUE(pairs.emplace(link.first, link.second).second);
    }
  }
  // 4 switches of 3 servers, and 3 switches of 4.
  EXPECT_EQ(pairs.size(), 4U * 3 + 3U * 6);
}

TEST(NeighbourRounds, AreAsFewAsThereCanBe) {
  EXPECT_EQ(neighbour_rounds(topology("star:2")).size(), 1U);
  EXPECT_EQ(neighbour_rounds(topology("star:8")).size(), 7U);
  EXPECT_EQ(neighbour_rounds(topology("star:9")).size(), 9U);
  EXPECT_EQ(neighbour_rounds(topology("bcube:16,3")).size(), 45U);
}

TEST(NeighbourRounds, JoinOnlyThoseBesideEachOtherInARing) {
  EXPECT_EQ(links_of(neighbour_rounds(topology("torus:5,1"))), 5U);
  EXPECT_EQ(neighbour_rounds(topology("torus:5,1")).size(), 3U);
  EXPECT_EQ(links_of(neighbour_rounds(topology("torus:4,2"))), 32U);
  EXPECT_EQ(neighbour_rounds(topology("torus:4,2")).size(), 4U);
}

}  // namespace
}  // namespace gradcube::control
