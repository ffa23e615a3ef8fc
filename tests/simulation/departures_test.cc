// What trainers that leave in order keep from being done, in jobs of several lanes: nobody waits
// for it for ever, and everybody is told by whose name.

#include <string>

#include "tests/simulation/jobs_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using dataplane::Departure;

// By rank; `local` on each server.
Trainers join_of_lanes(SimulatedCluster& cluster, std::size_t lanes, std::uint32_t local,
                       std::uint64_t heap_bytes = 1 << 18) {
  dataplane::TrainerRequest request{"job", 1};
  request.heap_bytes = heap_bytes;
  request.options.lanes.resize(lanes);
  request.options.trainers = local;
  Trainers trainers;
  for (bcube::ServerId server = 0; server < cluster.servers(); ++server) {
    for (std::uint32_t i = 0; i < local; ++i) trainers.push_back(cluster.join(server, request));
  }
  cluster.run_until([&] { return trainers.back()->admitted(); }, kSecond);
  return trainers;
}

void submit_in_lane(const std::unique_ptr<SimulatedTrainer>& trainer, unsigned lane,
                    std::uint64_t count = 500) {
  Collective one;
  one.count = count;
  one.lane = lane;
  one.offset += std::size_t{lane} * 4096;
  fill_and_submit(*trainer, one);
}

// All that has ended since, and why.
void expect_missed(SimulatedCluster& cluster, SimulatedTrainer& trainer, std::size_t collectives,
                   const std::string& whose) {
  const auto ended = trainer.take_completions();
  EXPECT_EQ(ended.size(), collectives);
  for (const shared::Completion& each : ended) EXPECT_EQ(each.code, GRADCUBE_EPEER);
  ASSERT_FALSE(cluster.told(trainer).empty());
  const std::string text = cluster.told(trainer).back().notice.text;
  EXPECT_NE(text.find("collective 1 of lane 0 of job \"job\" needs " + whose), std::string::npos)
      << text;
}

// Rank 0 submits the one of lane 1, which rank 2 has submitted, after that of lane 0, which rank 2
// has not; rank 1 has submitted both.
TEST(JobsOfSeveralLanes, FailWhatADepartedTrainerLacksThoughSomeHaveYetToSubmitWhatItHas) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  const Trainers trainers = join_of_lanes(cluster, 2, 2);
  submit_in_lane(trainers[2], 1);
  cluster.run_for(kMillisecond);
  cluster.leave(*trainers[2], Departure::orderly);
  submit_in_lane(trainers[1], 0);
  submit_in_lane(trainers[1], 1);
  submit_in_lane(trainers[0], 0);
  submit_in_lane(trainers[3], 0);
  const auto all_have_ended = [&] {
    return trainers[0]->idle() && trainers[3]->idle() && trainers[1]->idle();
  };
  EXPECT_FALSE(cluster.run_until(all_have_ended, 19 * kSecond)) << "rank 0 may come to lane 1";
  EXPECT_TRUE(cluster.run_until(all_have_ended, 2 * kSecond));
  for (const unsigned rank : {0U, 1U, 3U}) {
    expect_missed(cluster, *trainers[rank], rank == 1 ? 2 : 1, "rank 2");
  }
  // What the reset has failed in lane 1 fails wherever it comes.
  for (const unsigned rank : {0U, 3U}) submit_in_lane(trainers[rank], 1);
  EXPECT_TRUE(cluster.run_until(all_have_ended, kSecond));
  for (const unsigned rank : {0U, 3U}) expect_missed(cluster, *trainers[rank], 1, "rank 2");
  leave_all(cluster, trainers);
}

// Each of the two has begun a lane in which the other would follow.
TEST(JobsOfSeveralLanes, FailWhatADepartedTrainerLacksThoughOtherLanesWaitForEachOther) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}}));
  const Trainers trainers = join_of_lanes(cluster, 3, 1);
  for (const unsigned lane : {1U, 2U}) submit_in_lane(trainers[2], lane);
  cluster.run_for(kMillisecond);
  cluster.leave(*trainers[2], Departure::orderly);
  for (const unsigned rank : {0U, 1U}) {
    submit_in_lane(trainers[rank], 1 + rank);
    submit_in_lane(trainers[rank], 0);
  }
  EXPECT_TRUE(
      cluster.run_until([&] { return trainers[0]->idle() && trainers[1]->idle(); }, 22 * kSecond));
  for (const unsigned rank : {0U, 1U}) expect_missed(cluster, *trainers[rank], 2, "rank 2");
  leave_all(cluster, trainers);
}

// As long as any of the others goes on, what all share is not given up.
TEST(JobsOfSeveralLanes, CompleteWhatADepartedTrainerSharesBeforeTheyFailWhatItLacks) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}}));
  const Trainers trainers = join_of_lanes(cluster, 2, 1);
  for (unsigned i = 0; i < 3; ++i) submit_in_lane(trainers[2], 1);
  cluster.run_for(kMillisecond);
  cluster.leave(*trainers[2], Departure::orderly);
  for (const unsigned rank : {0U, 1U}) submit_in_lane(trainers[rank], 0);
  for (unsigned i = 0; i < 3; ++i) {
    submit_in_lane(trainers[0], 1);
    submit_in_lane(trainers[1], 1);
  }
  EXPECT_TRUE(
      cluster.run_until([&] { return trainers[0]->idle() && trainers[1]->idle(); }, 12 * kSecond));
  for (const unsigned rank : {0U, 1U}) {
    const auto ended = trainers[rank]->take_completions();
    ASSERT_EQ(ended.size(), 4u);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(ended[i].code, 0) << i;
    EXPECT_EQ(ended[3].code, GRADCUBE_EPEER);
  }
  leave_all(cluster, trainers);
}

// It takes 50 s on these links.
TEST(JobsOfSeveralLanes, WaitForWhatIsOnItsWayBeforeTheyFailWhatADepartedTrainerLacks) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}, {"rate", "1mbit"}}));
  const Trainers trainers = join_of_lanes(cluster, 2, 1, 1 << 23);
  constexpr std::uint64_t kCount = 1'500'000;
  submit_in_lane(trainers[2], 1, kCount);
  cluster.run_for(kMillisecond);
  cluster.leave(*trainers[2], Departure::orderly);
  for (const unsigned rank : {0U, 1U}) {
    submit_in_lane(trainers[rank], 0);
    submit_in_lane(trainers[rank], 1, kCount);
  }
  const auto all_have_ended = [&] { return trainers[0]->idle() && trainers[1]->idle(); };
  EXPECT_FALSE(cluster.run_until(all_have_ended, 30 * kSecond));
  EXPECT_TRUE(cluster.run_until(all_have_ended, 100 * kSecond));
  for (const unsigned rank : {0U, 1U}) {
    const auto ended = trainers[rank]->take_completions();
    ASSERT_EQ(ended.size(), 2u);
    EXPECT_EQ(ended[0].code, 0);
    EXPECT_EQ(ended[1].code, GRADCUBE_EPEER);
  }
  leave_all(cluster, trainers);
}

}  // namespace
}  // namespace gradcube::simulation
