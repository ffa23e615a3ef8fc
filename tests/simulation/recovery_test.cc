// What links with a rate, lossy switches and late trainers cost: resends, drops, memory.

#include <algorithm>

#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

class ShapedLinks : public testing::TestWithParam<const char*> {};

TEST_P(ShapedLinks, WithoutLossResendNothingAndOverflowNoQueue) {
  SimulatedCluster cluster(settings_of(
      {{"topology", "bcube:3,2"}, {"rate", "200mbit"}, {"mtu", GetParam()}, {"queue", "128K"}}));
  Collective collective;
  collective.count = 500'003;
  const Trainers trainers = cluster.join_all("shaped", heap_for(collective));
  allreduce(cluster, trainers, collective);
  const std::int64_t taken = allreduce(cluster, trainers, collective);
  EXPECT_EQ(cluster.counters().resent, 0u);
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  EXPECT_LE(cluster.switch_counts().queue_peak_bytes, 128'000u);
  // The paper's bound, 2 (N-1) / (k N) times the bytes at the links' rate.
  const double bound = 2.0 * 8 / (2 * 9) * static_cast<double>(collective.bytes()) * 8 / 200e6;
  EXPECT_GE(static_cast<double>(taken) * 1e-9, bound) << "faster than the links can be";
  EXPECT_LE(static_cast<double>(taken) * 1e-9, bound / 0.8);
  leave_all(cluster, trainers);
}

INSTANTIATE_TEST_SUITE_P(Mtus, ShapedLinks, testing::Values("1500", "9000"),
                         [](const auto& info) { return std::string("Mtu") + info.param; });

TEST(Recovery, ResendsHardlyMoreThanWasLost) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:3,2"},
                                        {"rate", "200mbit"},
                                        {"mtu", "9000"},
                                        {"loss", "0.01"},
                                        {"seed", "7"}}));
  Collective collective;
  collective.count = 1'000'001;
  const Trainers trainers = cluster.join_all("lossy", heap_for(collective));
  allreduce(cluster, trainers, collective);
  const auto lost = static_cast<double>(cluster.switch_counts().dropped_loss);
  EXPECT_GT(lost, 20);
  EXPECT_LE(static_cast<double>(cluster.counters().resent), 1.2 * lost);
  leave_all(cluster, trainers);
}

TEST(Recovery, OfTheVeryLastPacketsTakesAFewTimeoutsAtMost) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  Collective collective;
  collective.count = 100;
  const Trainers trainers = cluster.join_all("tail", heap_for(collective));
  allreduce(cluster, trainers, collective);
  cluster.cluster().emulated().set_impairments({.loss = 1.0});
  for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
  EXPECT_TRUE(
      cluster.run_until([&] { return cluster.switch_counts().dropped_loss >= 2; }, kSecond));
  cluster.cluster().emulated().set_impairments({});
  const std::int64_t begin = cluster.now();
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 60 * kSecond));
  EXPECT_LE(cluster.now() - begin, 4 * cluster.cluster().parameters().flows.recovery.rto_floor);
  expect_right(cluster, trainers, collective);
  leave_all(cluster, trainers);
}

TEST(Recovery, OutlivesACableThatIsOutForAWhile) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}, {"rate", "1gbit"}}));
  Collective collective;
  collective.count = 300'000;
  const Trainers trainers = cluster.join_all("cable", heap_for(collective));
  for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
  cluster.run_for(kMillisecond);
  ASSERT_FALSE(all_idle(trainers));
  cluster.cluster().emulated().switches().front().fabric->set_impairments(0, {.up = false});
  cluster.run_for(kSecond);
  EXPECT_FALSE(all_idle(trainers)) << "nothing can end without the cable";
  cluster.cluster().emulated().switches().front().fabric->set_impairments(0, {});
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  expect_right(cluster, trainers, collective);
  leave_all(cluster, trainers);
}

// The pause outlasts every timer. When it ends, the poller first sees what has come meanwhile; the
// others have sent no more than a segment per flow again.
TEST(Recovery, OutlivesAPollerThatPauses) {
  SimulationSettings settings = settings_of({{"topology", "bcube:3,2"}, {"rate", "1gbit"}});
  settings.lcores = 2;
  SimulatedCluster cluster(settings);
  Collective collective;
  collective.count = 1'000'000;
  const Trainers trainers = cluster.join_all("paused", heap_for(collective));
  const std::int64_t undisturbed = allreduce(cluster, trainers, collective);
  constexpr std::int64_t kPause = 300 * kMillisecond;
  constexpr unsigned kFlows = 9 * 2 * 2 * 2 * 2;  // servers, threads, steps, neighbours, stages
  for (std::size_t poller = 0; poller < 2; ++poller) {
    SCOPED_TRACE(poller);
    const std::uint64_t resent = cluster.counters().resent;
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
    cluster.run_for(undisturbed / 2);
    const std::int64_t begin = cluster.now();
    cluster.pause_poller(poller, kPause);
    EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 60 * kSecond));
    EXPECT_GT(cluster.now() - begin, kPause) << "the other poller did it all";
    EXPECT_LT(cluster.now() - begin, kPause + undisturbed);
    EXPECT_LE(cluster.counters().resent - resent, kFlows);
    expect_right(cluster, trainers, collective);
  }
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  leave_all(cluster, trainers);
}

TEST(Memory, IsBoundedByTheWindowsHoweverLateATrainerIs) {
  SimulatedCluster cluster(settings_of({{"topology", "star:4"}, {"mtu", "1500"}}));
  Collective collective;
  collective.count = 500'000;
  const Trainers trainers = cluster.join_all("late", heap_for(collective));
  for (unsigned rank = 1; rank < 4; ++rank) fill_and_submit(*trainers[rank], collective);
  unsigned peak = 0;
  const auto watch = [&] { peak = std::max(peak, cluster.packets_in_use()); };
  cluster.run_until([&] { return watch(), false; }, 20 * kMillisecond);
  fill_and_submit(*trainers[0], collective);
  EXPECT_TRUE(cluster.run_until([&] { return watch(), all_idle(trainers); }, kSecond));
  expect_right(cluster, trainers, collective);
  // A segment is two mbufs; a flow has a window of them on its way or waiting, and its
  // acknowledgements.
  const unsigned flows = 4 * 2 * 3;
  const unsigned window = cluster.cluster().parameters().window;
  EXPECT_LE(peak, flows * (2 * window + window));
  EXPECT_GT(peak, window) << "nothing was ever held: this test shows nothing";
  leave_all(cluster, trainers);
}

TEST(Memory, IsBoundedByTheWindowsWhileOtherJobsComeAndGo) {
  SimulatedCluster cluster(settings_of({{"topology", "star:4"}, {"mtu", "1500"}}));
  Collective collective;
  collective.count = 500'000;
  const Trainers trainers = cluster.join_all("late", heap_for(collective));
  for (unsigned rank = 1; rank < 4; ++rank) fill_and_submit(*trainers[rank], collective);
  cluster.run_for(5 * kMillisecond);
  const unsigned held = cluster.packets_in_use();
  for (unsigned i = 0; i < 10; ++i) {
    const Trainers guests = cluster.join_all("guest", 4096);
    cluster.run_for(5 * kMillisecond);
    for (const auto& guest : guests) cluster.leave(*guest, dataplane::Departure::orderly);
    cluster.run_for(5 * kMillisecond);
  }
  EXPECT_EQ(cluster.packets_in_use(), held) << "other jobs' coming and going has granted credit";
  fill_and_submit(*trainers[0], collective);
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  expect_right(cluster, trainers, collective);
  leave_all(cluster, trainers);
}

}  // namespace
}  // namespace gradcube::simulation
