#include "control/plan/plan_cost.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "control/plan/auto_plans.h"
#include "control/plan/verify.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

constexpr double kBytes = 1e6;

// Bytes take a microsecond each, and nothing else takes time.
CostParameters bytes_alone(const Plan& plan) {
  return {.levels = std::vector<LinkCost>(plan.topology().levels(), {0, 1e-6})};
}

CostParameters latency_alone(const Plan& plan) {
  return {.levels = std::vector<LinkCost>(plan.topology().levels(), {1, 0})};
}

PlanTime time_of(const Plan& plan, const CostParameters& parameters,
                 CollectiveKind kind = CollectiveKind::all_reduce) {
  return PlanCost(plan).time(kind, kBytes, parameters);
}

bool has_rings_over_several_levels(const Plan& plan) {
  bool rings = false;
  for (unsigned w = 0; w < plan.steps(0); ++w) rings = rings || plan.step(0, w).is_ring();
  return rings && plan.threads() == 1 && plan.steps(0) > 1;
}

// With segments of nothing, only the busiest link counts, relayed pieces included.
TEST(PlanCost, IsThatOfTheBusiestLinkWhereSegmentsFlow) {
  for (const Topology& topology : small_topologies(16)) {
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
      CostParameters parameters = bytes_alone(plan);
      parameters.segment_bytes = 1e-9;
      const VerifyReport report = verify(plan);
      const auto most = *std::max_element(report.link_pieces.begin(), report.link_pieces.end());
      bool equal_threads = true;
      for (unsigned t = 1; t < plan.threads(); ++t) {
        equal_threads = equal_threads && plan.thread(t).weight == plan.thread(0).weight;
      }
      if (!equal_threads || has_rings_over_several_levels(plan)) continue;
      EXPECT_NEAR(time_of(plan, parameters).seconds(),
                  static_cast<double>(most) / report.pieces * kBytes * 1e-6, 1e-6)
          << plan.algorithm() << " on " << topology.spec();
    }
  }
}

// PHub's PBox (section 4.4): eight workers, and a root that can send and receive as much as all of
// them, by one port or by ten. A worker's link has the gradients once each way, and sharded over
// the workers 2(N-1)/N times.
TEST(PlanCost, KnowsTheRatesAndThePortsOfARoot) {
  const Topology star = parse_topology("star:9", "test").with_rates({8'000'000});
  const std::vector<ServerId> workers = {0, 1, 2, 3, 4, 5, 6, 7};
  const Plan sharded = make_plan("mesh", star, Placement::of(star, workers, "test"), "test");
  const Plan slow = make_plan("ps:8", star, "test");
  CostParameters parameters = bytes_alone(sharded);
  parameters.segment_bytes = 1e-9;
  EXPECT_NEAR(time_of(sharded, parameters).seconds(), 1.75, 1e-6);
  EXPECT_NEAR(time_of(slow, parameters).seconds(), 8, 1e-6);
  for (const PortGroup& own : {PortGroup{8, 1, 80'000'000}, PortGroup{8, 10, 8'000'000}}) {
    const Plan plan = make_plan("ps:8", star.with_own_ports({own}), "test");
    EXPECT_EQ(plan.threads(), own.ports);
    EXPECT_NEAR(time_of(plan, parameters).seconds(), 1, 1e-6) << own.ports;
    EXPECT_EQ(verify(plan).pieces, own.ports);
  }
  const Plan half = make_plan("ps:8", star.with_own_ports({{8, 2, 16'000'000}}), "test");
  EXPECT_NEAR(time_of(half, parameters).seconds(), 2, 1e-6) << "the root's ports bind";
}

// Beside servers that all have trainers, too.
TEST(PlanCost, LetsAutoTakeARootThatDoesNotBind) {
  const Topology star = parse_topology("star:9", "test").with_rates({200'000'000});
  const auto chosen = [](const Topology& topology) {
    const PlanChoice choice = make_choice("auto", topology, Placement::all(topology), "test");
    return choice.plan_of(CollectiveKind::all_reduce, 2'000'000).algorithm();
  };
  EXPECT_EQ(chosen(star), "bml");
  for (const PortGroup& own : {PortGroup{5, 1, 2'000'000'000}, PortGroup{5, 10, 200'000'000}}) {
    const Topology wide = star.with_own_ports({own});
    EXPECT_EQ(chosen(wide), "ps");
    EXPECT_FALSE(make_plan("ps", wide, "test").owned(5, 0).none);
  }
}

TEST(PlanCost, IsTheSameForAGridAsForTheTopologyItLooksLike) {
  const Topology cube = parse_topology("bcube:4,2", "test");
  const std::vector<ServerId> row = {4, 5, 6};
  const Placement grid = Placement::of(cube, row, "test");
  for (const char* algorithm : {"bml", "ring", "ps", "mesh"}) {
    const Plan part = make_plan(algorithm, cube, grid, "test");
    const Plan star = plan_of(algorithm, "star:3");
    EXPECT_DOUBLE_EQ(time_of(part, bytes_alone(part)).seconds(),
                     time_of(star, bytes_alone(star)).seconds())
        << algorithm;
    EXPECT_DOUBLE_EQ(time_of(part, latency_alone(part)).seconds(),
                     time_of(star, latency_alone(star)).seconds())
        << algorithm;
  }
}

TEST(PlanCost, CountsTheMessagesThatWaitForEachOther) {
  const auto latency = [](const char* algorithm, const char* spec) {
    const Plan plan = plan_of(algorithm, spec);
    return time_of(plan, latency_alone(plan)).seconds();
  };
  EXPECT_DOUBLE_EQ(latency("bml", "bcube:4,3"), 6);
  EXPECT_DOUBLE_EQ(latency("halving_doubling", "bcube:4,2"), 8);
  EXPECT_DOUBLE_EQ(latency("ring", "bcube:3,2"), 16);
  EXPECT_DOUBLE_EQ(latency("hips:ring,mesh", "bcube:3,2"), 6);
  EXPECT_DOUBLE_EQ(latency("ps", "star:9"), 2);
  EXPECT_DOUBLE_EQ(latency("two-level", "bcube:4,2"), 6);
  // Two hops there, after a request for credit and its answer, in both stages.
  EXPECT_DOUBLE_EQ(latency("mesh", "bcube:3,2"), 2 * 3 * 1.5);
}

TEST(PlanCost, CountsTheMessagesThatAServerHandles) {
  const auto handled = [](const char* algorithm, const char* spec) {
    const Plan plan = plan_of(algorithm, spec);
    CostParameters parameters{.levels = std::vector<LinkCost>(plan.topology().levels())};
    parameters.overhead = 1;
    return time_of(plan, parameters).seconds();
  };
  EXPECT_DOUBLE_EQ(handled("bml", "bcube:4,2"), 48);  // 2 threads, 2 steps, 3 peers, in and out
  EXPECT_DOUBLE_EQ(handled("ring", "bcube:3,2"), 32);
  EXPECT_DOUBLE_EQ(handled("ps", "star:9"), 16);
  EXPECT_DOUBLE_EQ(handled("hips:root", "bcube:4,2"), 24);
  // Each of 16 has 6 to send and to receive, and 9 that go over a relay, each of them after a
  // request and its answer; and it relays as many.
  EXPECT_DOUBLE_EQ(handled("mesh", "bcube:4,2"), 2 * (2 * 6 + 2 * 3 * 9 + 2 * 3 * 9));
}

// Of 8 servers on a core, or of one that has more to do than 8 others.
TEST(PlanCost, CountsWhatAllServersOnACoreHandle) {
  const auto handled = [](const char* algorithm, const char* spec, double servers_per_core) {
    const Plan plan = plan_of(algorithm, spec);
    CostParameters parameters{.levels = std::vector<LinkCost>(plan.topology().levels())};
    parameters.overhead = 1;
    parameters.servers_per_core = servers_per_core;
    return time_of(plan, parameters).seconds();
  };
  EXPECT_DOUBLE_EQ(handled("bml", "bcube:4,2", 8), 8 * 48);
  // 15 gradients, of 2 threads and in 2 stages, are sent and received by 16 servers.
  EXPECT_DOUBLE_EQ(handled("hips:root", "bcube:4,2", 8), 8 * 15 * 2 * 2 * 2 / 16.0);
  EXPECT_DOUBLE_EQ(handled("hips:root", "bcube:4,2", 2), 24) << "the root alone";
}

TEST(PlanCost, GrowsWithTheServersOnACoreTheMoreTheMoreFramesThereAre) {
  const auto grows = [](const char* algorithm) {
    const Plan plan = plan_of(algorithm, "torus:4,2");
    CostParameters parameters = latency_alone(plan);
    parameters.overhead = 1;
    const double alone = time_of(plan, parameters).seconds();
    parameters.servers_per_core = 8;
    return time_of(plan, parameters).seconds() - alone;
  };
  EXPECT_GT(grows("hips:ring"), grows("blueconnect:ring"));
  EXPECT_GT(grows("mesh"), grows("ring"));
}

TEST(PlanCost, CountsRequestsForCreditWhereMessagesAreLong) {
  const auto latency = [](const char* algorithm, double bytes, CostParameters parameters) {
    const Plan plan = plan_of(algorithm, "bcube:4,2");
    parameters.unasked_bytes = 512;
    return PlanCost(plan).time(CollectiveKind::all_reduce, bytes, parameters).latency;
  };
  const CostParameters trips{.levels = {{1, 0}, {1, 0}}};
  const CostParameters messages{.levels = {{0, 0}, {0, 0}}, .overhead = 1, .segment_bytes = 8192};
  EXPECT_DOUBLE_EQ(latency("bml", 4096, trips), 4);
  EXPECT_DOUBLE_EQ(latency("bml", 4096, messages), 48);
  EXPECT_DOUBLE_EQ(latency("bml", 8192, trips), 2 * (3 + 1)) << "1 KB, then 256 B";
  EXPECT_DOUBLE_EQ(latency("bml", 8192, messages), 24 * 3 + 24);
  // 4 MB and 1 MB in segments of 8 KB.
  EXPECT_DOUBLE_EQ(latency("bml", 32.0 * (1 << 20), messages), 24 * (512 + 2) + 24 * (128 + 2));
  // In the second step of a ring two rounds of 256 B go unasked, and one asks.
  EXPECT_DOUBLE_EQ(latency("hips:ring", 8192, trips), 2 * (3 * 3 + 2 + 3));
  EXPECT_DOUBLE_EQ(latency("hips:ring", 8192, messages), 24 * 3 + 24 + 8 * 2);
}

TEST(PlanCost, CountsNoRequestsWhereNoLinkHasARate) {
  const Plan plan = plan_of("bml", "bcube:4,2");
  EXPECT_DOUBLE_EQ(time_of(plan, latency_alone(plan)).seconds(), 4);
}

TEST(PlanCost, TakesTheSlowestLevelForTheBusiest) {
  const Plan plan = plan_of("blueconnect", "bcube:4,2");
  CostParameters parameters = bytes_alone(plan);
  EXPECT_EQ(time_of(plan, parameters).busiest, 0u);
  parameters.levels[1].seconds_per_byte = 1e-5;
  EXPECT_EQ(time_of(plan, parameters).busiest, 1u);
  EXPECT_NEAR(time_of(plan, parameters).seconds(), 2 * (0.75 + 10 * 0.1875), 1e-9);
}

// On a level that is as busy as the other although it is four times as slow, nothing happens until
// the last round of the ring before it, nor on the other until that of the ring behind.
TEST(PlanCost, CountsWhatWaitsForTheLastRoundOfARing) {
  const auto seconds = [](const char* algorithm, double slower = 4) {
    const Plan plan = plan_of(algorithm, "bcube:4,2");
    CostParameters parameters = bytes_alone(plan);
    parameters.levels[1].seconds_per_byte = slower * 1e-6;
    parameters.segment_bytes = 1e-9;
    return time_of(plan, parameters).seconds();
  };
  EXPECT_NEAR(seconds("blueconnect"), 2 * 0.75, 1e-6);
  EXPECT_NEAR(seconds("blueconnect:ring"), 0.5 + 0.75 + 0.5 + 0.75, 1e-6);
  // The last of the slow ring's results goes through two more rounds.
  EXPECT_NEAR(seconds("blueconnect:ring", 10), 0.5 + 2 * 1.875 + 0.5, 1e-6);
}

// While one of its threads is at one level, another is at the other.
TEST(PlanCost, OfRingsInSeveralThreadsIsThatOfTheBusiestLink) {
  const Plan plan = plan_of("hips:ring", "bcube:4,2");
  CostParameters parameters = bytes_alone(plan);
  parameters.segment_bytes = 1e-9;
  EXPECT_NEAR(time_of(plan, parameters).seconds(), 2 * 15.0 / 32, 1e-6);
}

TEST(PlanCost, OfAChunkPerRankIsOneStageUnlessThereIsARoot) {
  const Plan bml = plan_of("bml", "bcube:3,2");
  const Plan ps = plan_of("ps", "bcube:3,2");
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    EXPECT_DOUBLE_EQ(2 * time_of(bml, bytes_alone(bml), kind).seconds(),
                     time_of(bml, bytes_alone(bml)).seconds());
    EXPECT_DOUBLE_EQ(2 * time_of(bml, latency_alone(bml), kind).seconds(),
                     time_of(bml, latency_alone(bml)).seconds());
    EXPECT_DOUBLE_EQ(time_of(ps, bytes_alone(ps), kind).seconds(),
                     time_of(ps, bytes_alone(ps)).seconds());
  }
}

TEST(PlanCost, CountsTheHeadersOfEachMessageOnALink) {
  const Plan plan = plan_of("ring", "star:4");
  CostParameters parameters = bytes_alone(plan);
  parameters.frame_bytes = 100;
  EXPECT_NEAR(PlanCost(plan).time(CollectiveKind::barrier, 0, parameters).transfer, 6 * 1e-4,
              1e-12);
}

}  // namespace
}  // namespace gradcube::control
