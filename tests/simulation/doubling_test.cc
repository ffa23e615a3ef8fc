// The algorithm recursive_doubling: how few frames a short all-reduce takes, and that its sums are
// right whatever is lost, late or on a detour. Each trainer overwrites its buffer as soon as it is
// its own again: what a neighbour may still need must lie elsewhere by then.

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

constexpr const char* kDoubling = "recursive_doubling";
constexpr std::uint64_t kShortPlace = 1 << 14;  // bytes of the heap for each collective

control::Plan doubling_plan(const SimulatedCluster& cluster,
                            const std::string& algorithm = kDoubling) {
  return control::make_plan(algorithm, cluster.plan().topology(), "test");
}

Collective short_order(std::uint64_t place, std::uint64_t count) {
  Collective collective;
  collective.offset += place * kShortPlace;
  collective.count = count;
  collective.salt = place;
  return collective;
}

// So many all-reduces in a row, of which each trainer has `in_flight` at a time. Each buffer is
// checked when it is its trainer's again, and overwritten.
void run_in_a_row(SimulatedCluster& cluster, const Trainers& trainers, unsigned orders,
                  std::uint64_t count, unsigned in_flight) {
  const control::Plan plan = doubling_plan(cluster);
  std::vector<Expected> expected;
  for (unsigned i = 0; i < orders; ++i) {
    expected.push_back(expected_result(plan, {}, short_order(i, count + i), 0));
  }
  std::vector<unsigned> submitted(trainers.size()), ended(trainers.size());
  const auto all_ended = [&] {
    bool all = true;
    for (std::size_t t = 0; t < trainers.size(); ++t) {
      for (const shared::Completion& completion : trainers[t]->take_completions()) {
        EXPECT_EQ(completion.code, 0);
        const Collective its = short_order(ended[t], count + ended[t]);
        EXPECT_EQ(wrong_elements(*trainers[t], its, expected[ended[t]]), 0u)
            << "elements of collective " << ended[t] << " at server " << t;
        scribble(*trainers[t], its);
        ++ended[t];
      }
      for (; submitted[t] < orders && submitted[t] - ended[t] < in_flight; ++submitted[t]) {
        fill_and_submit(*trainers[t], short_order(submitted[t], count + submitted[t]));
      }
      all = all && ended[t] == orders;
    }
    return all;
  };
  EXPECT_TRUE(cluster.run_until(all_ended, 60 * kSecond));
}

// A segment to each neighbour at each level, and an answer to each at most: `bml` has a thread for
// each level and two stages of as many.
TEST(Doubling, SendsASegmentToEachNeighbourOnce) {
  struct Case {
    const char* topology;
    std::uint64_t segments;  // of one server
    std::uint64_t of_bml;
  };
  for (const auto& [topology, segments, of_bml] :
       {Case{"bcube:3,2", 2 * 2, 2 * 2 * 2 * 2}, Case{"star:9", 8, 2 * 8},
        Case{"bcube:2,3", 3, 3 * 2 * 3}}) {
    SCOPED_TRACE(topology);
    SimulatedCluster cluster(settings_of({{"topology", topology}}));
    const control::Plan plan = doubling_plan(cluster);
    const Trainers trainers = cluster.join_all("few", kShortPlace, kDoubling);
    const Trainers others = cluster.join_all("many", kShortPlace, "bml");
    cluster.run_for(20 * kMillisecond);
    constexpr std::uint64_t kRounds = 10;
    const std::uint64_t all_rounds = kRounds * cluster.servers();
    const Collective collective = short_order(0, 250);
    const dataplane::EngineCounters before = cluster.counters();
    for (unsigned round = 0; round < kRounds; ++round) {
      allreduce(cluster, plan, trainers, collective);
    }
    const dataplane::EngineCounters between = cluster.counters();
    EXPECT_EQ(between.segments_sent - before.segments_sent, all_rounds * segments);
    EXPECT_LE(between.acknowledgements_sent - before.acknowledgements_sent, all_rounds * segments);
    const control::Plan& bml = cluster.plan();
    for (unsigned round = 0; round < kRounds; ++round) allreduce(cluster, bml, others, collective);
    EXPECT_EQ(cluster.counters().segments_sent - between.segments_sent, all_rounds * of_bml);
    leave_all(cluster, trainers);
    leave_all(cluster, others);
  }
}

// Without a wish a job has the segments of recursive_doubling where an all-reduce is short, and
// those of bml where it is not, each with its bits.
TEST(Doubling, RunsUnaskedWhatIsShortAndBmlTheRest) {
  for (const char* topology : {"star:2", "star:9", "bcube:3,2"}) {
    SimulatedCluster cluster(settings_of({{"topology", topology}}));
    constexpr std::uint64_t kPlace = 1 << 18;
    const Trainers by_default = cluster.join_all("default", kPlace);
    const Trainers doubling = cluster.join_all("doubling", kPlace, kDoubling);
    const Trainers bml = cluster.join_all("bml", kPlace, "bml");
    cluster.run_for(20 * kMillisecond);
    const auto sent = [&](const Trainers& trainers, const control::Plan& plan,
                          const Collective& collective) {
      const std::uint64_t before = cluster.counters().segments_sent;
      allreduce(cluster, plan, trainers, collective);
      return cluster.counters().segments_sent - before;
    };
    const control::Plan bml_plan = doubling_plan(cluster, "bml");
    for (const std::uint64_t count : {1U, 250U, 2047U, 2560U, 50'000U}) {
      SCOPED_TRACE(fmt::format("{}, {} elements", topology, count));
      const bool is_short = count < 2560;
      const Collective collective = short_order(0, count);
      EXPECT_EQ(plan_of(cluster, collective).algorithm(), is_short ? kDoubling : "bml");
      EXPECT_EQ(sent(by_default, plan_of(cluster, collective), collective),
                is_short ? sent(doubling, doubling_plan(cluster), collective)
                         : sent(bml, bml_plan, collective));
    }
    for (const Trainers* trainers : {&by_default, &doubling, &bml}) leave_all(cluster, *trainers);
  }
}

TEST(Doubling, IsAnotherWishThanBml) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  dataplane::TrainerRequest request{"mixed", 1};
  request.heap_bytes = kShortPlace;
  const auto first = cluster.join(0, request);
  request.options.lanes = {{"bml", 0}};
  try {
    cluster.join(1, request);
    FAIL() << "it was taken";
  } catch (const dataplane::JoinRefused& refused) {
    const std::string why = refused.what();
    EXPECT_NE(why.find("lane recursive_doubling"), std::string::npos) << why;
    EXPECT_NE(why.find("asks for weight 1, lane bml"), std::string::npos) << why;
  }
  request.options.lanes = {{kDoubling, 0}};
  const auto second = cluster.join(1, request);
  EXPECT_TRUE(second->admitted());
}

TEST(Doubling, IsRightWhateverIsLostDuplicatedAndReordered) {
  for (const char* topology : {"star:2", "star:5", "bcube:3,2", "bcube:2,3", "tree:2x3"}) {
    for (const unsigned in_flight : {1U, 7U}) {
      SCOPED_TRACE(fmt::format("{}, {} in flight", topology, in_flight));
      SimulationSettings settings = settings_of({{"topology", topology},
                                                 {"mtu", "1500"},
                                                 {"loss", "0.05"},
                                                 {"duplicate", "0.05"},
                                                 {"reorder", "0.05"}});
      settings.seed = settings.cluster.seed = in_flight;
      SimulatedCluster cluster(settings);
      const Trainers trainers = cluster.join_all("lossy", 64 * kShortPlace, kDoubling);
      run_in_a_row(cluster, trainers, 60, 800, in_flight);
      EXPECT_GT(cluster.counters().resent, 0u);
      leave_all(cluster, trainers);
    }
  }
}

// More than an executor has in flight, so that each takes the memory of one that has ended.
TEST(Doubling, UsesItsMemoryAgain) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:3,2"}, {"loss", "0.02"}}));
  const Trainers trainers = cluster.join_all("many", 200 * kShortPlace, kDoubling);
  run_in_a_row(cluster, trainers, 200, 10, 200);
  leave_all(cluster, trainers);
}

// Its neighbours hold what the others have sent them, and these end later than each other.
TEST(Doubling, WaitsForALateTrainerWithNothingLost) {
  for (unsigned late = 0; late < 9; late += 4) {
    SCOPED_TRACE(late);
    SimulatedCluster cluster(settings_of({{"topology", "bcube:3,2"}}));
    const control::Plan plan = doubling_plan(cluster);
    const Trainers trainers = cluster.join_all("late", kShortPlace, kDoubling);
    const Collective collective = short_order(0, 2001);
    for (const auto& trainer : trainers) {
      if (trainer->rank() != late) fill_and_submit(*trainer, collective);
    }
    cluster.run_for(20 * kMillisecond);
    EXPECT_GT(cluster.packets_in_use(), 0u) << "nothing is held: this test shows nothing";
    fill_and_submit(*trainers[late], collective);
    EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
    expect_right(plan, trainers, collective);
    EXPECT_EQ(cluster.counters().resent, 0u);
    leave_all(cluster, trainers);
  }
}

TEST(Doubling, GoesRoundALinkThatIsDown) {
  SimulationSettings settings = settings_of({{"topology", "bcube:3,2"}, {"greeting", "10ms"}});
  settings.links_are_watched = true;
  SimulatedCluster cluster(settings);
  const Trainers trainers = cluster.join_all("detour", 64 * kShortPlace, kDoubling);
  run_in_a_row(cluster, trainers, 5, 500, 2);
  cluster.cluster().emulated().switches().front().fabric->set_impairments(0, {.up = false});
  run_in_a_row(cluster, trainers, 20, 500, 2);
  leave_all(cluster, trainers);
}

// All others end the collectives that it has ended, and fail the rest alike.
TEST(Doubling, FailsForAllWhereAServerDies) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:3,2"}, {"loss", "0.02"}}));
  const Trainers trainers = cluster.join_all("death", 64 * kShortPlace, kDoubling);
  run_in_a_row(cluster, trainers, 5, 500, 2);
  for (unsigned i = 0; i < 20; ++i) {
    for (const auto& trainer : trainers) {
      if (trainer->rank() != 4 || i < 10) fill_and_submit(*trainer, short_order(i, 500));
    }
  }
  cluster.leave(*trainers[4], dataplane::Departure::death);
  const auto others_are_idle = [&] {
    for (const auto& trainer : trainers) {
      if (trainer->rank() != 4 && !trainer->idle()) return false;
    }
    return true;
  };
  EXPECT_TRUE(cluster.run_until(others_are_idle, 60 * kSecond));
  std::vector<std::int32_t> codes;
  for (const auto& trainer : trainers) {
    if (trainer->rank() == 4) continue;
    std::vector<std::int32_t> its;
    for (const auto& completion : trainer->take_completions()) its.push_back(completion.code);
    ASSERT_EQ(its.size(), 20u);
    if (codes.empty()) codes = its;
    EXPECT_EQ(its, codes) << "at server " << trainer->rank();
  }
  EXPECT_NE(codes.back(), 0);
  for (const auto& trainer : trainers) {
    if (trainer->rank() != 4) cluster.leave(*trainer, dataplane::Departure::orderly);
  }
  EXPECT_TRUE(cluster.run_until([&] { return cluster.packets_in_use() == 0; }, kSecond));
}

// The other poller has its core again after a while; until then the leaders' poller works alone.
constexpr std::size_t kOtherPoller = 1;

SimulationSettings on_two_lcores() {
  SimulationSettings settings = settings_of({{"topology", "bcube:2,2"}});
  settings.lcores = 2;
  return settings;
}

TEST(Doubling, EndsWhileThePollerOfTheOtherThreadsStandsStill) {
  constexpr std::int64_t kPause = kSecond;
  SimulatedCluster cluster(on_two_lcores());
  const Trainers trainers = cluster.join_all("job", 1 << 18);
  cluster.run_for(20 * kMillisecond);
  const std::int64_t begin = cluster.now();
  cluster.pause_poller(kOtherPoller, kPause);
  for (unsigned round = 0; round < 200; ++round) allreduce(cluster, trainers, short_order(0, 250));
  EXPECT_LT(cluster.now() - begin, kPause);
  // Both have a part in this one.
  allreduce(cluster, trainers, short_order(0, 50'000));
  EXPECT_GE(cluster.now() - begin, kPause);
  allreduce(cluster, trainers, short_order(0, 250));
  leave_all(cluster, trainers);
}

// More in a row than a lane has places for requests: then it waits for those that lie behind.
TEST(Doubling, GoesOnWhereTheOtherThreadsHaveMissedMoreThanThereArePlaces) {
  constexpr std::int64_t kPause = 10 * kSecond;
  SimulatedCluster cluster(on_two_lcores());
  const Trainers trainers = cluster.join_all("job", 1 << 18);
  cluster.run_for(20 * kMillisecond);
  const std::int64_t end_of_pause = cluster.now() + kPause;
  cluster.pause_poller(kOtherPoller, kPause);
  unsigned rounds = 0;
  for (; cluster.now() < end_of_pause; ++rounds) {
    ASSERT_LE(rounds, shared::kRingEntries + 1);
    allreduce(cluster, trainers, short_order(0, 10 + rounds % 7));
  }
  EXPECT_EQ(rounds, shared::kRingEntries + 1) << "the last has waited";
  for (const std::uint64_t count : {250U, 50'000U, 10U}) {
    allreduce(cluster, trainers, short_order(0, count));
  }
  leave_all(cluster, trainers);
}

// Short and long ones in any order, while pollers stall: each waits for those alone that run it.
TEST(Doubling, KeepsItsPlaceAmongLongOnesWherePollersStall) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SimulationSettings settings = on_two_lcores();
    settings.seed = seed;
    settings.stalls = 0.01;
    SimulatedCluster cluster(settings);
    const Trainers trainers = cluster.join_all("job", 1 << 22);
    dataplane::SeededRandom random(seed);
    std::vector<Collective> orders;
    for (std::uint64_t place = 0; place < 60; ++place) {
      Collective collective;
      collective.offset += place << 16;
      collective.count = random.below(3) == 0 ? 4'000 + place : 1 + random.below(900);
      collective.salt = place;
      orders.push_back(collective);
    }
    for (const Collective& collective : orders) {
      for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
    }
    EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 60 * kSecond));
    for (const Collective& collective : orders) {
      expect_right(plan_of(cluster, collective), trainers, collective);
    }
    leave_all(cluster, trainers);
  }
}

}  // namespace
}  // namespace gradcube::simulation
