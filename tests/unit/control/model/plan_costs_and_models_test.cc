// What a plan costs by the walk over its steps is what the papers' equations give for it.
#include <gtest/gtest.h>
#include <string>

#include "control/model/gst_table.h"
#include "control/plan/algorithms.h"
#include "control/plan/plan_cost.h"

namespace gradcube::control::model {
namespace {

constexpr double kBytes = 1e8;
constexpr double kRate = 1e10;
constexpr double kLatency = 1e-4;

Topology topology_of(const std::string& spec) { return parse_topology(spec, "test"); }

// No frame has headers and no server takes time for one, as in the papers.
CostParameters parameters_of(const Topology& topology, double latency) {
  return {.levels = std::vector<LinkCost>(topology.levels(), {latency, 8 / kRate})};
}

double modelled(const std::string& algorithm, const std::string& spec,
                const CostParameters& parameters) {
  const PlanCost cost(make_plan(algorithm, topology_of(spec), "test"));
  return cost.time(CollectiveKind::all_reduce, kBytes, parameters).seconds();
}

double in_lock_step(const std::string& algorithm, const std::string& spec, double latency) {
  return modelled(algorithm, spec, parameters_of(topology_of(spec), latency));
}

double by_the_papers(const std::string& algorithm, const std::string& spec, double latency) {
  return gst_row(parse_model_topology(spec, "test"), algorithm,
                 {.bytes = kBytes, .bits_per_second = kRate, .latency_seconds = latency})
      .value()
      .seconds;
}

TEST(PlanCostsAndModels, AgreeWithoutLatency) {
  for (const char* spec :
       {"star:2", "star:8", "bcube:2,2", "bcube:3,2", "bcube:4,2", "bcube:2,3", "bcube:3,3"}) {
    for (const char* algorithm :
         {"bml", "hips:mesh", "hips:ring", "hips:root", "mesh", "ring", "blueconnect"}) {
      const double expected = by_the_papers(algorithm, spec, 0);
      EXPECT_NEAR(in_lock_step(algorithm, spec, 0), expected, 1e-9 * expected)
          << algorithm << " on " << spec;
    }
  }
  for (const char* spec : {"star:8", "bcube:2,3", "bcube:4,2"}) {
    const double expected = by_the_papers("halving_doubling", spec, 0);
    EXPECT_NEAR(in_lock_step("halving_doubling", spec, 0), expected, 1e-9 * expected) << spec;
  }
  EXPECT_NEAR(in_lock_step("ps", "star:5", 0), by_the_papers("ps", "star:5", 0), 1e-12);
}

// BlueConnect, Eq. 1, 2, 6 and 10, whose messages each wait for the one before.
TEST(PlanCostsAndModels, AgreeOnTheLatencyOfRingsAndHalves) {
  for (const char* spec : {"star:8", "bcube:4,2", "bcube:2,3"}) {
    for (const char* algorithm : {"ring", "blueconnect", "halving_doubling"}) {
      const double expected = by_the_papers(algorithm, spec, kLatency);
      EXPECT_NEAR(in_lock_step(algorithm, spec, kLatency), expected, 1e-9 * expected)
          << algorithm << " on " << spec;
    }
  }
}

// The rows of BML and HiPS on a star, where the messages that a port passes follow each other.
TEST(PlanCostsAndModels, AgreeOnWhatAServerTakesForItsMessages) {
  for (const char* algorithm : {"bml", "mesh", "ps"}) {
    CostParameters parameters = parameters_of(topology_of("star:5"), 0);
    // One way at a time, but a parameter server, whose messages come in and then go out.
    parameters.overhead = algorithm == std::string("ps") ? kLatency : kLatency / 2;
    const double expected = by_the_papers(algorithm, "star:5", kLatency);
    EXPECT_NEAR(modelled(algorithm, "star:5", parameters), expected, 1e-9 * expected) << algorithm;
  }
}

// BML, section 3.2, on levels of different radices: the busiest level is a bound that a buffer of
// many segments comes close to.
TEST(PlanCostsAndModels, AgreeOnTheBusiestLevelWhereSegmentsFlow) {
  for (const char* spec : {"bcube:3x2", "bcube:4x3x2"}) {
    for (const char* algorithm : {"bml", "hips:mesh", "hips:ring"}) {
      CostParameters parameters = parameters_of(topology_of(spec), 0);
      parameters.segment_bytes = 1;
      const double expected = by_the_papers(algorithm, spec, 0);
      EXPECT_NEAR(modelled(algorithm, spec, parameters), expected, 1e-5 * expected)
          << algorithm << " on " << spec;
    }
  }
  // BlueConnect's levels then work at once, and no longer one after the other as in Eq. 10.
  CostParameters parameters = parameters_of(topology_of("bcube:4,2"), 0);
  parameters.segment_bytes = 1;
  EXPECT_NEAR(modelled("blueconnect", "bcube:4,2", parameters), 1.5 * 8 * kBytes / kRate, 1e-6);
}

}  // namespace
}  // namespace gradcube::control::model
