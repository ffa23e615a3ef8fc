// What a small collective does not wait for, and what nobody does while it waits. With a rate an
// acknowledgement may be delayed by many times what such a collective takes.

#include "dataplane/daemon/fabric_sizing.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using control::CollectiveKind;

std::int64_t acknowledge_delay(const SimulationSettings& settings) {
  return dataplane::fabric_parameters(settings.cluster).flows.acknowledgement.delay;
}

Collective small(const SimulatedCluster& cluster, CollectiveKind kind) {
  Collective collective;
  collective.kind = kind;
  collective.count = kind == CollectiveKind::barrier ? 0 : 10 * cluster.servers();
  if (control::has_root(kind)) collective.root = cluster.servers() - 1;
  return collective;
}

class SmallCollectives : public testing::TestWithParam<CollectiveKind> {};

TEST_P(SmallCollectives, EndBeforeAnAcknowledgementThatIsDelayed) {
  for (const char* topology : {"star:2", "star:5", "bcube:3,2", "bcube:2,3"}) {
    SCOPED_TRACE(topology);
    const SimulationSettings settings = settings_of({{"topology", topology}, {"rate", "1gbit"}});
    SimulatedCluster cluster(settings);
    const Collective collective = small(cluster, GetParam());
    const Trainers trainers = cluster.join_all("small", heap_for(collective));
    cluster.run_for(20 * kMillisecond);  // the flows tell each other of their credit
    for (unsigned round = 0; round < 3; ++round) {
      EXPECT_LT(allreduce(cluster, trainers, collective), acknowledge_delay(settings) / 2);
    }
    EXPECT_EQ(cluster.counters().resent, 0u);
    leave_all(cluster, trainers);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SmallCollectives,
                         testing::Values(CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                         CollectiveKind::all_gather, CollectiveKind::broadcast,
                                         CollectiveKind::reduce, CollectiveKind::barrier),
                         kind_test_name);

// One for each flow of results, whose end nothing answers, and none for contributions, which the
// results answer. In each of 2 threads at 9 servers results go to 2 neighbours in 2 steps.
TEST(SmallAllReduces, InARowSendOneAcknowledgementForEachFlowOfResults) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:3,2"}}));
  const Collective collective = small(cluster, CollectiveKind::all_reduce);
  const Trainers trainers = cluster.join_all("row", heap_for(collective), "bml");
  cluster.run_for(20 * kMillisecond);
  const dataplane::EngineCounters before = cluster.counters();
  constexpr unsigned kRounds = 20;
  const control::Plan& plan = cluster.plan();
  for (unsigned round = 0; round < kRounds; ++round) allreduce(cluster, plan, trainers, collective);
  const dataplane::EngineCounters after = cluster.counters();
  EXPECT_LE(after.acknowledgements_sent - before.acknowledgements_sent,
            kRounds * 2u * 9u * 2u * 2u);
  leave_all(cluster, trainers);
}

// A wake-up takes a core longer than the rest of a small collective.
TEST(SmallAllReduces, WakeEachTrainerThatSleepsOnce) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:3,2"}}));
  const Collective collective = small(cluster, CollectiveKind::all_reduce);
  const Trainers trainers = cluster.join_all("sleepers", heap_for(collective));
  for (const auto& trainer : trainers) {
    trainer->header().trainer_asleep.store(1);
    trainer->take_rings();
  }
  constexpr unsigned kRounds = 20;
  for (unsigned round = 0; round < kRounds; ++round) {
    allreduce(cluster, trainers, collective);
    for (const auto& trainer : trainers) EXPECT_EQ(trainer->take_rings(), 1u);
  }
  leave_all(cluster, trainers);
}

// So the pollers may sleep.
TEST(ALateTrainer, LeavesNothingForThePollersToDoSoon) {
  for (const char* rate : {"", "1gbit"}) {
    SCOPED_TRACE(rate);
    auto settings = settings_of({{"topology", "bcube:3,2"}});
    if (*rate != 0) settings = settings_of({{"topology", "bcube:3,2"}, {"rate", rate}});
    settings.lcores = 2;
    SimulatedCluster cluster(settings);
    const Collective collective = small(cluster, CollectiveKind::all_reduce);
    const Trainers trainers = cluster.join_all("late", heap_for(collective));
    for (unsigned rank = 1; rank < trainers.size(); ++rank) {
      fill_and_submit(*trainers[rank], collective);
    }
    cluster.run_for(300 * kMillisecond);
    for (const auto& poller : cluster.cluster().pollers()) {
      EXPECT_GT(poller->next_event(), cluster.now() + kMillisecond);
    }
    fill_and_submit(*trainers[0], collective);
    ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
    expect_right(cluster, trainers, collective);
    leave_all(cluster, trainers);
  }
}

}  // namespace
}  // namespace gradcube::simulation
