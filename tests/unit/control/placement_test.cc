#include "control/plan/base/placement.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

Topology cube() { return parse_topology("bcube:3,2", "test"); }

std::vector<ServerId> servers_of(const Placement& placement) {
  std::vector<ServerId> servers;
  for (Rank rank = 0; rank < placement.ranks(); ++rank) servers.push_back(placement.server(rank));
  return servers;
}

std::string placement_refusal(const Topology& topology, const std::vector<ServerId>& members) {
  return message_of<UsageError>([&] { Placement::of(topology, members, "job a"); });
}

TEST(Placement, OfAllServersGivesEachItsOwnNumberAsRank) {
  for (const Topology& topology : small_topologies(81)) {
    SCOPED_TRACE(topology.spec());
    const Placement all = Placement::all(topology);
    ASSERT_EQ(all.ranks(), topology.servers());
    ASSERT_EQ(all.dimensions().size(), topology.levels());
    for (unsigned level = 0; level < topology.levels(); ++level) {
      const GridDimension expected{level, topology.space().radix(level),
                                   topology.space().weight(level)};
      EXPECT_EQ(all.dimensions()[level], expected);
    }
    for (ServerId server = 0; server < topology.servers(); ++server) {
      EXPECT_EQ(all.server(server), server);
      EXPECT_EQ(all.rank(server), server);
    }
    EXPECT_EQ(all.rank(topology.servers()), std::nullopt);
    EXPECT_EQ(all.rank(UINT32_MAX), std::nullopt);
  }
}

TEST(Placement, OfAGridHasRanksThatAscendWithTheServersAndLeadBackToThem) {
  for (const Topology& topology :
       {cube(), parse_topology("bcube:2,3", "test"), parse_topology("bcube:4x3x2", "test")}) {
    for (const std::vector<ServerId>& members : all_grids(topology)) {
      const Placement grid = Placement::of(topology, members, "test");
      EXPECT_EQ(servers_of(grid), members);
      for (ServerId server = 0; server < topology.servers(); ++server) {
        const auto at = std::find(members.begin(), members.end(), server);
        const auto rank = static_cast<Rank>(at - members.begin());
        if (at == members.end()) {
          EXPECT_EQ(grid.rank(server), std::nullopt);
        } else {
          EXPECT_EQ(grid.rank(server), rank);
          EXPECT_EQ(grid.place(rank), (TrainerPlace{server, 0}));
        }
      }
    }
  }
}

TEST(Placement, LetsALevelWithOneDigitVanish) {
  // Row 1: [1,0] [1,1] [1,2].
  const Placement row = Placement::of(cube(), std::vector<ServerId>{5, 3, 4}, "test");
  EXPECT_EQ(row.dimensions(), (std::vector<GridDimension>{{0, 3, 1}}));
  EXPECT_EQ(servers_of(row), (std::vector<ServerId>{3, 4, 5}));
  // Column 2: [0,2] [1,2] [2,2].
  const Placement column = Placement::of(cube(), std::vector<ServerId>{2, 5, 8}, "test");
  EXPECT_EQ(column.dimensions(), (std::vector<GridDimension>{{1, 3, 1}}));
  // [0,0] [0,2] [2,0] [2,2].
  const Placement square = Placement::of(cube(), std::vector<ServerId>{0, 2, 6, 8}, "test");
  EXPECT_EQ(square.dimensions(), (std::vector<GridDimension>{{0, 2, 1}, {1, 2, 2}}));
  const Placement one = Placement::of(cube(), std::vector<ServerId>{4}, "test");
  EXPECT_EQ(one.ranks(), 1u);
  EXPECT_TRUE(one.dimensions().empty());
}

TEST(Placement, NamesTheServersThatAreMissingFromAGrid) {
  const auto missing = [](const std::vector<ServerId>& members) {
    return Placement::of(cube(), members, "job a").missing_text();
  };
  EXPECT_EQ(missing({0, 1, 3}), "[1,1] is");
  EXPECT_EQ(missing({0, 4}), "[0,1] [1,0] are");
  EXPECT_EQ(missing({0, 4, 8}), "[0,1] [0,2] [1,0] [1,2] and 2 more are");
}

TEST(Placement, RefusesServersThatAreNoneOrNamedTwice) {
  EXPECT_EQ(placement_refusal(cube(), {}), "job a: no server is named; expected at least one");
  EXPECT_EQ(placement_refusal(cube(), {0, 9}),
            "job a: there is no server number 9; bcube:3,2 has servers 0 to 8");
  EXPECT_EQ(placement_refusal(cube(), {5, 1, 5}),
            "job a: server [1,2] is named twice; expected each server once");
}

TEST(Placement, PutsTheTrainersOfAServerSideBySide) {
  const Placement row = Placement::of(cube(), std::vector<ServerId>{5, 3, 4}, "test");
  const Placement several = row.with_trainers(3, "test");
  EXPECT_EQ(several.ranks(), 3u) << "a plan's ranks are those of servers";
  EXPECT_EQ(several.trainers(), 9u);
  EXPECT_EQ(several.place(0), (TrainerPlace{3, 0}));
  EXPECT_EQ(several.place(5), (TrainerPlace{4, 2}));
  EXPECT_EQ(several.place(6), (TrainerPlace{5, 0}));
}

std::string refusal_of_trainers(const std::string& topology, std::uint32_t trainers) {
  return message_of<UsageError>([&] {
    Placement::all(parse_topology(topology, "test")).with_trainers(trainers, "--trainers");
  });
}

TEST(Placement, RefusesMoreTrainersThanAServerOrAJobMayHave) {
  EXPECT_EQ(refusal_of_trainers("star:2", 16), "");
  EXPECT_EQ(refusal_of_trainers("star:2", 17),
            "--trainers: 17 trainers on each server: expected 1 to 16");
  EXPECT_EQ(refusal_of_trainers("star:2", 0),
            "--trainers: 0 trainers on each server: expected 1 to 16");
  EXPECT_EQ(refusal_of_trainers("bcube:16,4", 1), "");
  EXPECT_EQ(refusal_of_trainers("bcube:16,4", 2),
            "--trainers: 2 trainers on each of 65536 servers are 131072: expected at most 65536");
}

}  // namespace
}  // namespace gradcube::control
