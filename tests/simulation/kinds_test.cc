// What the kinds of collective promise beside their results: when a buffer is the trainer's again,
// what a late trainer costs, and what becomes of trainers that call different kinds.

#include <fmt/format.h>
#include <string>

#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using control::CollectiveKind;

// Iterates until every trainer has ended one collective. Each must succeed with the right bits, and
// each trainer overwrites its buffer as soon as it is its own again.
void end_and_overwrite(SimulatedCluster& cluster, const Trainers& trainers,
                       const Collective& collective) {
  std::size_t ended = 0;
  const auto take = [&] {
    for (const auto& trainer : trainers) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, 0);
        const Expected expected =
            expected_result(plan_of(cluster, collective), {}, collective, trainer->rank());
        EXPECT_EQ(wrong_elements(*trainer, collective, expected), 0u)
            << "elements, at rank " << trainer->rank();
        scribble(*trainer, collective);
        ++ended;
      }
    }
    return ended == trainers.size();
  };
  EXPECT_TRUE(cluster.run_until(take, 10 * kSecond)) << ended << " have ended";
}

// Contributions of about ten segments for each neighbour, so that all of them are on their way or
// held before the last trainer submits.
Collective chunks_for(const SimulatedCluster& cluster, CollectiveKind kind) {
  Collective collective;
  collective.kind = kind;
  collective.count = 3601 * cluster.servers();
  return collective;
}

class CollectivesThatMoveOneWay : public testing::TestWithParam<CollectiveKind> {};

// The last trainer's segments reach one neighbour before another. The first then has all that it
// waits for, while the second still holds what the first has sent.
TEST_P(CollectivesThatMoveOneWay, EndOnlyWhenTheNeighboursHaveUsedWhatTheyGot) {
  for (const char* topology : {"star:3", "star:4", "bcube:2,2", "bcube:3,2"}) {
    for (unsigned late = 0; late < 4; ++late) {
      SimulatedCluster cluster(
          settings_of({{"topology", topology}, {"rate", "200mbit"}, {"mtu", "1500"}}));
      late %= cluster.servers();
      SCOPED_TRACE(fmt::format("{}, rank {} is late", topology, late));
      Collective collective = chunks_for(cluster, GetParam());
      if (control::has_root(collective.kind)) collective.root = (late + 1) % cluster.servers();
      const Trainers trainers = cluster.join_all("one-way", heap_for(collective));
      for (const auto& trainer : trainers) {
        if (trainer->rank() != late) fill_and_submit(*trainer, collective);
      }
      cluster.run_for(20 * kMillisecond);
      fill_and_submit(*trainers[late], collective);
      end_and_overwrite(cluster, trainers, collective);
      leave_all(cluster, trainers);
      if (late + 1 == cluster.servers()) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CollectivesThatMoveOneWay,
                         testing::Values(CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                         CollectiveKind::reduce),
                         kind_test_name);

class EarlyResults : public testing::TestWithParam<const char*> {};

TEST_P(EarlyResults, WaitForALateTrainerAndAreSentOnce) {
  SimulatedCluster cluster(settings_of({{"topology", GetParam()}, {"mtu", "1500"}}));
  Collective collective;
  collective.kind = CollectiveKind::all_gather;
  // More than a window of segments in each stream.
  collective.count = 50'001 * cluster.servers();
  const Trainers trainers = cluster.join_all("gather", heap_for(collective));
  for (unsigned rank = 1; rank < trainers.size(); ++rank) {
    fill_and_submit(*trainers[rank], collective);
  }
  cluster.run_for(200 * kMillisecond);
  EXPECT_GT(cluster.packets_in_use(), 0u) << "nothing is held: this test shows nothing";
  fill_and_submit(*trainers[0], collective);
  end_and_overwrite(cluster, trainers, collective);
  const dataplane::EngineCounters counters = cluster.counters();
  EXPECT_EQ(counters.resent, 0u);
  EXPECT_EQ(counters.duplicates, 0u);
  for (const std::uint64_t dropped : counters.dropped) EXPECT_EQ(dropped, 0u);
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  leave_all(cluster, trainers);
}

TEST_P(EarlyResults, OfSeveralCollectivesWaitInTheirOrder) {
  SimulatedCluster cluster(settings_of({{"topology", GetParam()}}));
  std::vector<Collective> gathers(5);
  for (std::size_t i = 0; i < gathers.size(); ++i) {
    gathers[i].kind = CollectiveKind::all_gather;
    gathers[i].dtype = aggregation::DataType::bytes;
    gathers[i].count = (i * 333 + 1) * cluster.servers();
    gathers[i].offset += i << 16;
    gathers[i].salt = i;
  }
  const Trainers trainers = cluster.join_all("gathers", 6 << 16);
  for (const unsigned late : {1U, 0U}) {
    for (const auto& trainer : trainers) {
      if ((trainer->rank() == 0) == (late == 0)) {
        for (const Collective& gather : gathers) fill_and_submit(*trainer, gather);
      }
    }
    cluster.run_for(5 * kMillisecond);
  }
  ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  for (const Collective& gather : gathers) expect_right(cluster, trainers, gather);
  EXPECT_EQ(cluster.counters().resent, 0u);
  leave_all(cluster, trainers);
}

INSTANTIATE_TEST_SUITE_P(Topologies, EarlyResults, testing::Values("star:4", "bcube:2,2"),
                         [](const auto& info) {
                           return std::string(info.param[0] == 's' ? "OnAStar" : "OnABCube");
                         });

class DifferentKinds : public testing::TestWithParam<CollectiveKind> {
 protected:
  static Collective collective(CollectiveKind kind, const SimulatedCluster& cluster) {
    Collective collective;
    collective.kind = kind;
    collective.count = kind == CollectiveKind::barrier ? 0 : 700 * cluster.servers();
    return collective;
  }

  // All trainers but one call the parameter's kind, and that one another.
  static void expect_mismatch(const char* topology, const char* loss, CollectiveKind other,
                              bool other_first) {
    SimulatedCluster cluster(
        settings_of({{"topology", topology}, {"loss", loss}, {"mtu", "1500"}, {"seed", "5"}}));
    const Collective right = collective(GetParam(), cluster);
    const Collective wrong = collective(other, cluster);
    const Trainers trainers = cluster.join_all("mismatch", heap_for(right) + heap_for(wrong));
    const unsigned odd = static_cast<unsigned>(other) % cluster.servers();
    if (other_first) fill_and_submit(*trainers[odd], wrong);
    if (other_first) cluster.run_for(10 * kMillisecond);
    for (const auto& trainer : trainers) {
      if (trainer->rank() != odd) fill_and_submit(*trainer, right);
    }
    if (!other_first) cluster.run_for(10 * kMillisecond);
    if (!other_first) fill_and_submit(*trainers[odd], wrong);
    ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 2 * kSecond))
        << "a trainer hangs";
    for (const auto& trainer : trainers) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, GRADCUBE_EMISMATCH);
      }
    }
    // The job goes on.
    for (const auto& trainer : trainers) fill_and_submit(*trainer, right);
    end_and_overwrite(cluster, trainers, right);
    leave_all(cluster, trainers);
  }
};

TEST_P(DifferentKinds, AsTheFirstCollectiveFailOnEveryTrainerAndTheJobGoesOn) {
  for (const CollectiveKind other : control::kCollectiveKinds) {
    if (other == GetParam()) continue;
    for (const char* topology : {"star:3", "bcube:2,2"}) {
      for (const char* loss : {"0", "0.1"}) {
        for (const bool other_first : {false, true}) {
          SCOPED_TRACE(fmt::format("{} {} on {} with loss {}{}",
                                   control::collective_kind_name(GetParam()),
                                   control::collective_kind_name(other), topology, loss,
                                   other_first ? ", the other first" : ""));
          expect_mismatch(topology, loss, other, other_first);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DifferentKinds, testing::ValuesIn(control::kCollectiveKinds),
                         kind_test_name);

TEST(Kinds, WithDifferentRootsFailOnEveryTrainer) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}}));
    Collective collective;
    collective.kind = kind;
    collective.count = 1000;
    const Trainers trainers = cluster.join_all("roots", heap_for(collective));
    for (const auto& trainer : trainers) {
      collective.root = trainer->rank() == 2 ? 1 : 3;
      fill_and_submit(*trainer, collective);
    }
    ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
    for (const auto& trainer : trainers) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, GRADCUBE_EMISMATCH);
      }
    }
    leave_all(cluster, trainers);
  }
}

}  // namespace
}  // namespace gradcube::simulation
