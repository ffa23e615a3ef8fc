// A simulated cluster gives the bits of the oracle, whatever it was drawn from: topology, servers,
// trainers, rates, algorithm, kind, type, size, what the network loses, and whether the job is
// reproducible.
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/property/drawn_plan.h"
#include "tests/simulation/scenario.h"

namespace gradcube::property {
namespace {

constexpr std::uint32_t kMostServers = 9;

struct DrawnRun {
  DrawnPlan plan{};
  unsigned kind = 0;
  unsigned type = 0;
  unsigned operation = 0;
  unsigned root = 0;
  std::uint64_t count = 0;
  unsigned lost = 0;  // in percent, and as much is doubled and overtaken
  bool small_frames = false;
  bool reproducible = false;
  std::uint64_t seed = 1;

  simulation::Collective collective() const {
    simulation::Collective result;
    result.kind = control::kCollectiveKinds[kind];
    result.dtype = aggregation::kPlainTypes[type];
    // A kind that adds nothing has no operation: a trainer's library leaves it at 0.
    if (control::reduces(result.kind)) {
      result.operation = static_cast<aggregation::Operation>(operation);
      if (!aggregation::supports(result.dtype, result.operation)) {
        result.dtype = aggregation::DataType::float32;
      }
    }
    result.count = result.kind == control::CollectiveKind::barrier ? 0 : count;
    result.root = root;
    return result;
  }

  simulation::Scenario scenario() const {
    simulation::Scenario scenario;
    control::ClusterSettings& cluster = scenario.simulation.cluster;
    cluster.topology = control::parse_topology(plan.topology().spec(), "the drawn topology");
    cluster.rates = plan.link_rates();
    cluster.mtu = small_frames ? 1500 : 9000;
    cluster.loss = cluster.duplicate = cluster.reorder = 0.01 * lost;
    cluster.seed = seed;
    scenario.simulation.seed = seed;
    simulation::ScenarioJob& job = scenario.jobs.emplace_back();
    job.options.members = plan.servers();
    job.options.trainers = 1 + plan.trainers;
    job.options.reproducible = reproducible;
    job.options.lanes.push_back({.algorithm = plan.algorithm_name()});
    scenario.collectives.push_back(collective());
    scenario.limit = 120'000'000'000;
    return scenario;
  }
};

void showValue(const DrawnRun& drawn, std::ostream& out) {
  out << describe(drawn.plan) << ": " << simulation::describe(drawn.scenario());
}

rc::Gen<DrawnRun> drawn_runs() {
  return rc::gen::build<DrawnRun>(
      rc::gen::set(&DrawnRun::plan, drawn_plans(kMostServers)),
      rc::gen::set(&DrawnRun::kind,
                   rc::gen::inRange(0U, unsigned{control::kCollectiveKinds.size()})),
      rc::gen::set(&DrawnRun::type, rc::gen::inRange(0U, unsigned{aggregation::kPlainTypeCount})),
      rc::gen::set(&DrawnRun::operation, rc::gen::inRange(0U, unsigned{aggregation::kOperations})),
      rc::gen::set(&DrawnRun::root, rc::gen::inRange(0U, 3 * kMostServers)),
      rc::gen::set(&DrawnRun::count, rc::gen::inRange<std::uint64_t>(0, 4000)),
      rc::gen::set(&DrawnRun::lost, rc::gen::inRange(0U, 8U)),
      rc::gen::set(&DrawnRun::small_frames, rc::gen::arbitrary<bool>()),
      rc::gen::set(&DrawnRun::reproducible, rc::gen::arbitrary<bool>()),
      rc::gen::set(&DrawnRun::seed, rc::gen::inRange<std::uint64_t>(1, 1000)));
}

TEST(ClusterProperties, EveryRunHasTheBitsOfTheOracle) {
  EXPECT_TRUE(rc::check("each collective ends right at every server, and loses no packet", [] {
    const DrawnRun drawn = *drawn_runs();
    const std::string algorithm = drawn.plan.algorithm_name();
    RC_TAG(algorithm.substr(0, algorithm.find(':')));
    const simulation::Outcome outcome = simulation::play(drawn.scenario());
    for (const std::string& complaint : outcome.complaints) RC_FAIL(complaint);
    RC_ASSERT(outcome.failed == 0U);
    RC_ASSERT(outcome.succeeded == drawn.plan.placement().trainers());
  }));
}

}  // namespace
}  // namespace gradcube::property
