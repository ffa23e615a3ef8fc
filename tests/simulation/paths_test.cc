// Flows that choose among parallel paths by what their links have left: BCube source routing.

#include <cstdlib>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/simulation/mail_fixture.h"

namespace gradcube::simulation {
namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

// Messages of one path each, so that a path's links are what bounds them.
class ParallelPaths : public testing::TestWithParam<std::uint64_t> {
 protected:
  static SimulationSettings settings(bool probing, std::uint64_t seed, double loss = 0,
                                     const std::string& topology = "bcube:4,2") {
    SimulationSettings settings = settings_of(
        {{"topology", topology}, {"rate", "200mbit"}, {"probing", "100ms"}, {"greeting", "10ms"}});
    settings.cluster.seed = settings.seed = seed;
    settings.cluster.loss = loss;
    settings.paths_are_probed = probing;
    settings.links_are_watched = true;
    return settings;
  }
  static unsigned server(unsigned high, unsigned low) { return high * 4 + low; }

  // Both paths of the first kind go over level 1 to [1,0], and then out through its port 0.
  static std::vector<MailJob::Message> through_one_relay(std::uint64_t bytes) {
    return {{server(0, 0), server(1, 1), 1, bytes, 1}, {server(3, 0), server(1, 3), 2, bytes, 1}};
  }

  static void set_up(SimulatedCluster& cluster, bcube::ServerId at, unsigned level, bool up) {
    auto& fabric = cluster.cluster().emulated();
    for (const auto& link : fabric.links()) {
      if (link.server != at || link.level != level) continue;
      fabric.change_impairments({link}, [up](dataplane::Impairments impairments) {
        impairments.up = up;
        return impairments;
      });
    }
  }

  struct Outcome {
    std::int64_t time;
    dataplane::EngineCounters counters;
  };
  static Outcome exchange(const SimulationSettings& settings,
                          const std::vector<MailJob::Message>& messages) {
    SimulatedCluster cluster(settings);
    std::uint64_t heap = 65'536;
    for (const MailJob::Message& message : messages) heap += message.bytes + 4096;
    MailJob job(cluster, heap);
    std::vector<MailJob::Receipt> receipts;
    for (const MailJob::Message& message : messages) {
      receipts.push_back(job.receive(message));
      job.send(message, message.tag);
    }
    const Outcome outcome{job.finish_well(), cluster.counters()};
    for (std::size_t i = 0; i < messages.size(); ++i) {
      job.expect_here(messages[i], receipts[i], messages[i].tag);
    }
    leave_all(cluster, job.trainers());
    return outcome;
  }
};

// Each has half of the port that they share, until one of them has moved.
TEST_P(ParallelPaths, AreSharedByFlowsThatBeginOverTheSameRelay) {
  const auto messages = through_one_relay(20 * kMegabyte);
  const Outcome without = exchange(settings(false, GetParam()), messages);
  const Outcome with = exchange(settings(true, GetParam()), messages);
  EXPECT_EQ(without.counters.path_moves + without.counters.path_probes, 0u);
  EXPECT_LT(with.time, without.time * 3 / 4);
  EXPECT_GE(with.counters.path_moves, 1u);
  EXPECT_LE(with.counters.path_moves, 3u);
}

TEST_P(ParallelPaths, AreNotSwappedForEver) {
  const auto messages = through_one_relay(80 * kMegabyte);
  const Outcome outcome = exchange(settings(true, GetParam()), messages);
  EXPECT_GE(outcome.counters.path_moves, 1u);
  EXPECT_LE(outcome.counters.path_moves, 3u);
}

// The relay sends as much itself, to its neighbour, over the port that the first path leaves it by.
TEST_P(ParallelPaths, AvoidARelayThatHasMuchToDo) {
  const std::vector<MailJob::Message> messages = {
      {server(0, 0), server(1, 1), 1, 20 * kMegabyte, 1},
      {server(1, 0), server(1, 2), 2, 20 * kMegabyte, 1}};
  const Outcome without = exchange(settings(false, GetParam()), messages);
  const Outcome with = exchange(settings(true, GetParam()), messages);
  EXPECT_LT(with.time, without.time * 3 / 4);
  EXPECT_EQ(with.counters.path_moves, 1u);
}

TEST_P(ParallelPaths, StayAsTheyAreWhereOneFlowIsAlone) {
  const Outcome outcome =
      exchange(settings(true, GetParam()), {{server(0, 0), server(1, 1), 1, 40 * kMegabyte, 1}});
  EXPECT_GT(outcome.counters.path_probes, 0u);
  EXPECT_EQ(outcome.counters.path_moves, 0u);
}

// An engine probes at most eight servers in an interval of 100 ms, over two paths each.
TEST_P(ParallelPaths, AreProbedABoundedNumberOfTimes) {
  std::vector<MailJob::Message> messages;
  for (unsigned to = 1; to < 16; ++to) {
    messages.push_back({0, to, to, 2 * kMegabyte, 1});
  }
  const Outcome outcome = exchange(settings(true, GetParam()), messages);
  EXPECT_GT(outcome.counters.path_probes, 0u);
  const auto tenths = static_cast<std::uint64_t>(outcome.time / (100 * kMillisecond)) + 1;
  EXPECT_LE(outcome.counters.path_probes, 2 * tenths * 8 * 8);
}

// exchange() compares each byte.
TEST_P(ParallelPaths, DeliverEachByteOnceWhileFlowsMoveAndFramesAreLost) {
  const auto messages = through_one_relay(60 * kMegabyte);
  const Outcome outcome = exchange(settings(true, GetParam(), 0.005), messages);
  EXPECT_GE(outcome.counters.path_moves, 1u);
  EXPECT_GT(outcome.counters.resent, 30u);
}

// [0,0,0] reaches [0,0,1] over level 1 or 2. The relay of the first detour, [0,1,0], has much to
// send itself over the port that it needs.
TEST_P(ParallelPaths, LeadAroundALinkThatIsDownOverARelayThatHasRoom) {
  const std::vector<MailJob::Message> messages = {{0, 1, 1, 20 * kMegabyte, 1},
                                                  {2, 3, 2, 20 * kMegabyte, 1}};
  std::int64_t times[2] = {};
  for (const bool probing : {false, true}) {
    SimulatedCluster cluster(settings(probing, GetParam(), 0, "bcube:2,3"));
    MailJob job(cluster, 41 * kMegabyte);
    set_up(cluster, 1, 0, false);
    cluster.run_for(100 * kMillisecond);
    std::vector<MailJob::Receipt> receipts;
    for (const auto& message : messages) {
      receipts.push_back(job.receive(message));
      job.send(message, message.tag);
    }
    times[probing ? 1 : 0] = job.finish_well();
    for (std::size_t i = 0; i < 2; ++i) job.expect_here(messages[i], receipts[i], i + 1);
    EXPECT_EQ(cluster.counters().path_moves, probing ? 1u : 0u);
    leave_all(cluster, job.trainers());
  }
  EXPECT_LT(times[1], times[0] * 3 / 4);
}

// All collectives of a flat mesh, whose exchanges at distance two may choose, beside messages that
// load some of its relays.
TEST_P(ParallelPaths, LeaveASumItsBitsWhileItsFlowsChoose) {
  SimulatedCluster cluster(settings(true, GetParam(), 0.002));
  const control::Plan plan = control::make_plan("mesh", cluster.plan().topology(), "test");
  Collective collective;
  collective.count = 100'003;
  const Trainers trainers = cluster.join_all("mesh", heap_for(collective), "mesh");
  MailJob job(cluster, 13 * kMegabyte);
  const auto messages = through_one_relay(6 * kMegabyte);
  std::vector<MailJob::Receipt> receipts;
  for (const auto& message : messages) {
    receipts.push_back(job.receive(message));
    job.send(message, message.tag);
  }
  while (!all_idle(job.trainers())) allreduce(cluster, plan, trainers, collective);
  job.finish_well();
  for (std::size_t i = 0; i < 2; ++i) job.expect_here(messages[i], receipts[i], i + 1);
  EXPECT_GT(cluster.counters().path_probes, 0u);
  leave_all(cluster, trainers);
  leave_all(cluster, job.trainers());
}

std::vector<std::uint64_t> seeds_of_paths() {
  if (std::getenv("GRADCUBE_TEST_DEEP") == nullptr) return {1};
  return {1, 2, 3};
}

INSTANTIATE_TEST_SUITE_P(Seeds, ParallelPaths, testing::ValuesIn(seeds_of_paths()));

}  // namespace
}  // namespace gradcube::simulation
