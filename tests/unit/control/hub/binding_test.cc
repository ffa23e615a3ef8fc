#include "control/hub/binding.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "control/base/errors.h"
#include "control/checkpoint/optimizer_settings.h"
#include "control/plan/algorithms.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::control::hub {
namespace {

std::vector<Lcore> lcores_on(const std::vector<int>& nodes) {
  std::vector<Lcore> lcores;
  for (const int node : nodes) {
    lcores.push_back({.id = 10 + static_cast<unsigned>(lcores.size()), .numa_node = node});
  }
  return lcores;
}

std::vector<std::vector<unsigned>> dealt(const std::vector<HubPath>& paths) {
  std::vector<std::vector<unsigned>> lists;
  for (const HubPath& path : paths) lists.push_back(path.lcores);
  return lists;
}

using Lists = std::vector<std::vector<unsigned>>;

TEST(HubPaths, AreTheThreadsOfAPlanWithThePortsThatTheyUseFirst) {
  const auto paths = hub_paths(plan_of("bml", "bcube:3,2"), lcores_on({-1, -1}), {});
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(paths[1].thread, 1u);
  EXPECT_EQ(paths[1].port, 1u);
  EXPECT_EQ(dealt(paths), (Lists{{0}, {1}}));
}

// A star of nine servers, the last one with so many ports.
Plan parameter_server(unsigned ports) {
  const Topology topology =
      parse_topology("star:9", "topology").with_own_ports({{8, ports, 1'000'000}});
  return make_plan("ps:8", topology, "algorithm");
}

TEST(HubPaths, AreTheRootsPortsOfAParameterServer) {
  const auto paths = hub_paths(parameter_server(3), lcores_on({-1, -1}), {});
  ASSERT_EQ(paths.size(), 3u);
  EXPECT_EQ(paths[2].thread, 2u);
  EXPECT_EQ(paths[2].port, 2u);
  EXPECT_EQ(dealt(paths), (Lists{{0}, {1}, {0}}));
}

TEST(HubPaths, HaveLcoresOnTheNodesOfTheirPorts) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const int nodes[] = {1, 0};
  EXPECT_EQ(dealt(hub_paths(plan, lcores_on({0, 0, 1, 1, 0}), nodes)), (Lists{{2, 3}, {0, 1, 4}}));
  // A port whose node has no lcore gets another one's; an lcore without a port near it is idle.
  const int far[] = {0, 7};
  EXPECT_EQ(dealt(hub_paths(plan, lcores_on({0, 0}), far)), (Lists{{0}, {1}}));
  const int one[] = {0, 0};
  EXPECT_EQ(dealt(hub_paths(plan, lcores_on({0, 0, 3}), one)), (Lists{{0}, {1}}));
}

TEST(HubPaths, ShareLcoresWhereThereAreFewer) {
  const Plan plan = plan_of("bml", "bcube:2,3");
  EXPECT_EQ(dealt(hub_paths(plan, lcores_on({-1, -1}), {})), (Lists{{0}, {1}, {0}}));
  EXPECT_THROW(hub_paths(plan, {}, {}), SetupError);
}

TEST(HubPaths, HaveNoPortWhereAStepUsesSeveral) {
  const Plan plan = plan_of("mesh", "bcube:3,2");
  const auto paths = hub_paths(plan, lcores_on({-1}), {});
  EXPECT_EQ(paths[0].port, std::nullopt);
  EXPECT_EQ(port_bytes(plan, paths, std::vector<HubLoad>{{1, 900}}), std::nullopt);
}

// Sizes of layers, as networks have them: a few large ones and many small.
std::vector<HubKey> drawn_keys(std::mt19937_64& random) {
  std::vector<HubKey> keys;
  for (std::size_t i = 0; i < 1 + random() % 60; ++i) {
    const std::uint64_t most = random() % 4 == 0 ? 1'000'000 : 3000;
    keys.push_back({std::to_string(i), 1 + random() % most});
  }
  return ordered_keys(std::move(keys), "keys");
}

TEST(Bindings, DivideEachLevelToWithinAChunkOfTheMean) {
  const std::uint64_t seed = protocol::test_seed(1810);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    const auto chunks = cut_into_chunks(drawn_keys(random), kDefaultChunkBytes, "chunk");
    const auto paths =
        hub_paths(plan_of("bml", "bcube:2,4"), lcores_on(std::vector<int>(8, -1)), {});
    const auto bindings = bind_chunks(chunks, paths);
    const HubLoads loads = hub_loads(chunks, bindings, paths, 8);
    std::uint64_t all = 0;
    std::uint64_t largest = 0;
    for (const Chunk& chunk : chunks) {
      all += chunk.bytes;
      largest = std::max(largest, chunk.bytes);
    }
    std::uint64_t in_paths = 0;
    for (std::size_t p = 0; p < 4; ++p) {
      // What LPT adds to the mean is less than the largest chunk.
      EXPECT_LE(loads.paths[p].bytes, all / 4 + largest);
      in_paths += loads.paths[p].bytes;
      for (const unsigned lcore : paths[p].lcores) {
        EXPECT_LE(loads.lcores[lcore].bytes, loads.paths[p].bytes / 2 + largest);
      }
    }
    EXPECT_EQ(in_paths, all);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const auto& own = paths[bindings[c].path].lcores;
      EXPECT_NE(std::find(own.begin(), own.end(), bindings[c].lcore), own.end());
    }
  }
}

TEST(Bindings, FollowTheWeightsOfThreads) {
  const auto topology =
      parse_topology("bcube:3,2", "topology").with_rates({10'000'000'000, 8'000'000'000});
  const Plan plan = make_plan("bml", topology, "algorithm");
  const auto paths = hub_paths(plan, lcores_on({-1, -1}), {});
  const std::vector<HubKey> keys = {{"a", 10'000'000}};
  const auto chunks = cut_into_chunks(keys, kDefaultChunkBytes, "chunk");
  const HubLoads loads = hub_loads(chunks, bind_chunks(chunks, paths), paths, 2);
  const auto [t0, t1] = std::pair(plan.thread(0).weight, plan.thread(1).weight);
  EXPECT_GT(t0, t1);
  const double ratio =
      static_cast<double>(loads.paths[0].bytes) / static_cast<double>(loads.paths[1].bytes);
  EXPECT_NEAR(ratio / (static_cast<double>(t0) / t1), 1, 0.02);
}

TEST(PortBytes, OfBmlAreTheSameOnAllPortsAndThoseOfAnAggregation) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const auto paths = hub_paths(plan, lcores_on({-1}), {});
  // 900 bytes in each thread: two thirds of 900 in its first step, two thirds of 300 in the second.
  EXPECT_EQ(port_bytes(plan, paths, std::vector<HubLoad>{{1, 900}, {1, 900}}),
            (std::vector<double>{800, 800}));
}

TEST(PortBytes, OfAParameterServerAreEveryOthersGradients) {
  const Plan plan = plan_of("ps", "star:9");
  const auto paths = hub_paths(plan, lcores_on({-1}), {});
  EXPECT_EQ(port_bytes(plan, paths, std::vector<HubLoad>{{1, 100}}), (std::vector<double>{800}));
}

TEST(PortBytes, OfSeveralPortsOfARootAreThoseOfTheChunksThatAreBoundToThem) {
  const Plan plan = parameter_server(2);
  const auto paths = hub_paths(plan, lcores_on({-1}), {});
  EXPECT_EQ(port_bytes(plan, paths, std::vector<HubLoad>{{1, 100}, {1, 70}}),
            (std::vector<double>{800, 560}));
}

// Each root works with all its lcores.
TEST(Bindings, DealAllLcoresToThePathsOfEachRoot) {
  const auto paths = hub_paths(plan_of("ps:7 8", "star:9"), lcores_on({-1, -1, -1}), {});
  ASSERT_EQ(paths.size(), 2u);
  for (const HubPath& path : paths) EXPECT_EQ(path.lcores, (std::vector<unsigned>{0, 1, 2}));
}

TEST(PortBytes, OfSeveralRootsAreThoseOfTheBusiest) {
  const Plan plan = plan_of("ps:7 8", "star:9");
  const auto paths = hub_paths(plan, lcores_on({-1}), {});
  EXPECT_EQ(port_bytes(plan, paths, std::vector<HubLoad>{{1, 100}, {1, 110}}),
            (std::vector<double>{880}));
}

// They are lcores of one server each.
TEST(Bindings, OfSeveralRootsLoadTheLcoresOfTheBusiestAlone) {
  const auto paths = hub_paths(plan_of("ps:7 8", "star:9"), lcores_on({-1, -1}), {});
  const std::vector<HubKey> keys = {{"a", 640'000}};
  const auto chunks = cut_into_chunks(keys, kDefaultChunkBytes, "chunk");
  const HubLoads loads = hub_loads(chunks, bind_chunks(chunks, paths), paths, 2);
  EXPECT_EQ(busiest_root(paths, loads.paths), 7U);
  EXPECT_EQ(loads.lcores[0].bytes + loads.lcores[1].bytes, loads.paths[0].bytes);
}

// What comes over relays comes in by the ports that their routes lead to.
TEST(PortBytes, OfARootThatIsNoNeighbourOfAllGoByTheRoutes) {
  const Plan plan = plan_of("ps", "bcube:3,2");
  const auto paths = hub_paths(plan, lcores_on({-1}), {});
  EXPECT_EQ(paths.size(), 1u);
  EXPECT_EQ(port_bytes(plan, paths, std::vector<HubLoad>{{1, 100}}),
            (std::vector<double>{400, 400}));
}

TEST(OptimizerBytes, AreThoseOfWeightsStateAndRoundedWeights) {
  const std::vector<HubKey> keys = {{"a", 10, aggregation::DataType::float32},
                                    {"b", 100, aggregation::DataType::float16}};
  EXPECT_EQ(optimizer_bytes(keys, parse_optimizer("sgd", "optimizer")), 110u * 4 + 200);
  EXPECT_EQ(optimizer_bytes(keys, parse_optimizer("adam", "optimizer")), 110u * 12 + 200);
  EXPECT_EQ(greatest_share(plan_of("bml", "bcube:3,2")), 1.0 / 9);
  EXPECT_EQ(greatest_share(plan_of("ps", "star:9")), 1);
  EXPECT_EQ(greatest_share(plan_of("ps:7 8 2", "star:9")), 1.0 / 3);
  EXPECT_EQ(greatest_share(plan_of("hips:root,mesh", "bcube:3,2")), 1.0 / 3);
}

}  // namespace
}  // namespace gradcube::control::hub
