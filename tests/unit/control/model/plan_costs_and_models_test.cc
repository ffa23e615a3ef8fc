// What a plan costs by the walk over its steps is what the papers' equations give for it. Their
// times stand in tests/unit/model/plan_times.txt, of which plans_test.py checks that they are those
// of `gradcube model gst`.
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/plan_cost.h"

namespace gradcube::control {
namespace {

// Of the file: 100 MB over links of 10 Gbit/s.
constexpr double kBytes = 1e8;
constexpr double kRate = 1e10;

struct PaperTime {
  std::string algorithm;
  std::string spec;
  double latency = 0;  // of a message
  double seconds = 0;
};

// A line of the file is a way to compare, an algorithm, a topology, the latency and the time.
std::vector<PaperTime> times_of(const std::string& asked) {
  const char* const path = std::getenv("GRADCUBE_PLAN_TIMES");
  std::ifstream file(path != nullptr ? path : "");
  std::vector<PaperTime> times;
  std::string way;
  PaperTime time;
  while (file >> way >> time.algorithm >> time.spec >> time.latency >> time.seconds) {
    if (way == asked) times.push_back(time);
  }
  EXPECT_FALSE(times.empty()) << asked;
  return times;
}

// No frame has headers and no server takes time for one, as in the papers.
CostParameters parameters_of(const std::string& spec, double latency) {
  const unsigned levels = parse_topology(spec, "test").levels();
  return {.levels = std::vector<LinkCost>(levels, {latency, 8 / kRate})};
}

double modelled(const PaperTime& time, const CostParameters& parameters) {
  const PlanCost cost(make_plan(time.algorithm, parse_topology(time.spec, "test"), "test"));
  return cost.time(CollectiveKind::all_reduce, kBytes, parameters).seconds();
}

// Latency: BlueConnect, Eq. 1, 2, 6 and 10, whose messages each wait for the one before.
TEST(PlanCostsAndModels, AgreeInLockStep) {
  for (const PaperTime& time : times_of("lock_step")) {
    EXPECT_NEAR(modelled(time, parameters_of(time.spec, time.latency)), time.seconds,
                1e-9 * time.seconds)
        << time.algorithm << " on " << time.spec;
  }
}

// The rows of BML and HiPS on a star, where the messages that a port passes follow each other.
TEST(PlanCostsAndModels, AgreeOnWhatAServerTakesForItsMessages) {
  for (const PaperTime& time : times_of("server")) {
    CostParameters parameters = parameters_of(time.spec, 0);
    // One way at a time, but a parameter server, whose messages come in and then go out.
    parameters.overhead = time.algorithm == "ps" ? time.latency : time.latency / 2;
    EXPECT_NEAR(modelled(time, parameters), time.seconds, 1e-9 * time.seconds) << time.algorithm;
  }
}

// BML, section 3.2, on levels of different radices: the busiest level is a bound that a buffer of
// many segments comes close to.
TEST(PlanCostsAndModels, AgreeOnTheBusiestLevelWhereSegmentsFlow) {
  for (const PaperTime& time : times_of("flow")) {
    CostParameters parameters = parameters_of(time.spec, 0);
    parameters.segment_bytes = 1;
    EXPECT_NEAR(modelled(time, parameters), time.seconds, 1e-5 * time.seconds)
        << time.algorithm << " on " << time.spec;
  }
  // BlueConnect's levels then work at once, and no longer one after the other as in Eq. 10.
  CostParameters parameters = parameters_of("bcube:4,2", 0);
  parameters.segment_bytes = 1;
  EXPECT_NEAR(modelled({.algorithm = "blueconnect", .spec = "bcube:4,2"}, parameters),
              1.5 * 8 * kBytes / kRate, 1e-6);
}

}  // namespace
}  // namespace gradcube::control
