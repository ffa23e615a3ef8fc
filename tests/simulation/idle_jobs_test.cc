// Jobs that are attached and do nothing cost a job that works nothing: neither time nor frames.
// What counts is virtual time and counters; the time that the host takes is for the benches.

#include <string>
#include <vector>

#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

constexpr unsigned kIdleJobs = 32;

// What all-reduces of one job took.
struct Effort {
  double nanoseconds = 0;
  double segments = 0;
  double acknowledgements = 0;
  double resent = 0;
  double dropped = 0;  // by the switches' queues
};

using Flags = std::vector<std::pair<std::string, std::string>>;

Collective of_elements(std::uint64_t count) {
  Collective collective;
  collective.count = count;
  return collective;
}

// The job makes `times` all-reduces. The idle jobs have made one each, as jobs do between two
// iterations of their training.
Effort effort_beside(unsigned idle_jobs, const Flags& flags, std::uint64_t elements,
                     unsigned times) {
  SimulatedCluster cluster(settings_of(flags));
  std::vector<Trainers> idle;
  const Collective little = of_elements(1'000);
  for (unsigned i = 0; i < idle_jobs; ++i) {
    idle.push_back(cluster.join_all("idle-" + std::to_string(i), heap_for(little)));
    allreduce(cluster, idle.back(), little);
  }
  const Collective collective = of_elements(elements);
  const Trainers active = cluster.join_all("active", heap_for(collective));
  allreduce(cluster, active, collective);  // into the steady state
  cluster.run_for(20 * kMillisecond);      // the others' last acknowledgements leave
  const dataplane::EngineCounters before = cluster.counters();
  Effort effort;
  for (unsigned i = 0; i < times; ++i) {
    effort.nanoseconds += static_cast<double>(allreduce(cluster, active, collective));
  }
  const dataplane::EngineCounters after = cluster.counters();
  effort.segments = static_cast<double>(after.segments_sent - before.segments_sent);
  effort.acknowledgements =
      static_cast<double>(after.acknowledgements_sent - before.acknowledgements_sent);
  effort.resent = static_cast<double>(after.resent - before.resent);
  effort.dropped = static_cast<double>(cluster.switch_counts().dropped_queue);
  leave_all(cluster, active);
  for (const Trainers& trainers : idle) leave_all(cluster, trainers);
  return effort;
}

void expect_no_difference(const Flags& flags, std::uint64_t elements, unsigned times) {
  const Effort alone = effort_beside(0, flags, elements, times);
  const Effort beside = effort_beside(kIdleJobs, flags, elements, times);
  EXPECT_LE(beside.nanoseconds, 1.03 * alone.nanoseconds);
  EXPECT_EQ(beside.segments, alone.segments);
  // How many acknowledgements find a segment to ride on depends on their times.
  EXPECT_LE(beside.acknowledgements, 1.05 * alone.acknowledgements + 10);
  EXPECT_EQ(beside.resent, 0);
  EXPECT_EQ(beside.dropped, 0);
}

TEST(IdleJobs, CostAJobThatFillsTheLinksNeitherTimeNorFrames) {
  expect_no_difference({{"topology", "bcube:3,2"}, {"rate", "1gbit"}}, 500'000, 2);
}

TEST(IdleJobs, CostASmallCollectiveAtARateNeitherTimeNorFrames) {
  expect_no_difference({{"topology", "bcube:3,2"}, {"rate", "1gbit"}}, 250, 50);
}

TEST(IdleJobs, CostAJobWithoutARateNeitherTimeNorFrames) {
  expect_no_difference({{"topology", "bcube:3,2"}}, 100'000, 3);
}

}  // namespace
}  // namespace gradcube::simulation
