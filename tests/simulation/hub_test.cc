// Hubs over links that lose packets, under a virtual clock.

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/simulation/hub_job.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

constexpr unsigned kRounds = 4;

std::vector<control::HubKey> keys() {
  constexpr auto kType = aggregation::DataType::float32;
  return {{"bias", 10, kType}, {"conv", 9'000, kType}, {"fc", 3'001, kType}, {"norm", 64, kType}};
}

// What all servers have, bit by bit, when trainers have pushed weights and then gradients.
std::vector<std::uint8_t> trained(const char* topology, const char* algorithm, const char* loss,
                                  std::uint64_t seed) {
  SimulationSettings settings =
      settings_of({{"topology", topology}, {"loss", loss}, {"mtu", "1500"}});
  settings.seed = seed;
  SimulatedCluster cluster(settings);
  HubJob job(cluster, keys(), "adam:lr=0.01", algorithm);
  job.make();
  push_first(job);
  const std::vector<std::uint8_t> first = job.weights(*job.trainers()[0]);
  for (unsigned round = 1; round < kRounds; ++round) push_gradients(job, round);
  const std::vector<std::uint8_t> weights = job.weights(*job.trainers()[0]);
  EXPECT_NE(weights, first);
  for (const auto& trainer : job.trainers()) {
    EXPECT_EQ(job.weights(*trainer), weights) << algorithm << ", server " << trainer->server();
  }
  const dataplane::EngineCounters counters = cluster.counters();
  EXPECT_EQ(counters.hub_rounds, kRounds * keys().size() * cluster.servers());
  if (std::string(loss) != "0") {
    EXPECT_GT(counters.resent, 0U) << "nothing was lost";
  }
  leave_all(cluster, job.trainers());
  return weights;
}

TEST(Hubs, HaveTheSameWeightsWhateverIsLost) {
  struct Place {
    const char* topology;
    const char* algorithm;
  };
  for (const Place& place : {Place{"bcube:2,2", "bml"}, Place{"star:3", "ps"},
                             Place{"star:3", "ring"}, Place{"bcube:2,2", "hips:mesh,ring"}}) {
    const std::vector<std::uint8_t> weights = trained(place.topology, place.algorithm, "0", 1);
    for (const std::uint64_t seed : {2U, 3U}) {
      EXPECT_EQ(trained(place.topology, place.algorithm, "0.05", seed), weights)
          << place.algorithm << " on " << place.topology << ", seed " << seed;
    }
  }
}

TEST(Hubs, FollowEachOtherInAJob) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}, {"loss", "0.05"}}));
  HubJob job(cluster, keys(), "sgd:lr=0.5");
  for (const std::uint32_t hub : {1U, 2U, 3U}) {
    job.make(hub);
    const auto first = static_cast<float>(hub);
    job.push_all(shared::PushKind::weights,
                 [&](unsigned, std::uint32_t, std::uint64_t) { return first; });
    job.push_all(shared::PushKind::gradients,
                 [](unsigned rank, std::uint32_t, std::uint64_t) { return 2.0F * rank; });
    const float expected = first - 1.5F;  // half of the mean of 0, 2, 4 and 6
    for (const auto& trainer : job.trainers()) {
      const std::vector<std::uint8_t> bytes = job.weights(*trainer);
      float value = 0;
      std::memcpy(&value, bytes.data() + bytes.size() - sizeof value, sizeof value);
      EXPECT_EQ(value, expected) << "hub " << hub << ", server " << trainer->server();
    }
    job.end();
  }
  leave_all(cluster, job.trainers());
}

void free_hub(SimulatedCluster& cluster, const SimulatedTrainer& trainer) {
  cluster.nodes().at(trainer.server()).end_hub(trainer.id(), 1);
}

// The hub needs all trainers, and one has given it up.
void expect_failed_for(SimulatedCluster& cluster, SimulatedTrainer& pushing,
                       const std::string& gone) {
  const std::vector<shared::Completion> ends = pushing.take_completions();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].code, GRADCUBE_EPEER);
  bool explained = false;
  for (const Told& told : cluster.told(pushing)) {
    explained =
        explained || std::string(told.notice.text).find("needs " + gone) != std::string::npos;
  }
  EXPECT_TRUE(explained);
}

TEST(Hubs, GoOnForOthersOfAServerWhereATrainerFreesThem) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  HubJob job(cluster, keys(), "sgd:lr=0.5", "", {}, 2);
  job.make();
  push_first(job);
  Trainers& trainers = job.trainers();
  SimulatedTrainer& pushing = *trainers[1];
  free_hub(cluster, *trainers[0]);
  job.push(pushing, 1, shared::PushKind::gradients,
           [](unsigned, std::uint32_t, std::uint64_t) { return 1.0F; });
  cluster.run_for(kSecond);
  EXPECT_FALSE(pushing.idle()) << "it waits for as long as its trainer lets it";
  EXPECT_EQ(job.state(pushing).end_code, GRADCUBE_OK);
  cluster.leave(*trainers[0], dataplane::Departure::orderly);
  ASSERT_TRUE(cluster.run_until([&] { return pushing.idle(); }, 60 * kSecond));
  expect_failed_for(cluster, pushing, "rank 0");
  trainers.erase(trainers.begin());
  leave_all(cluster, trainers);
}

TEST(Hubs, FollowEachOtherThoughTheWordOfATrainerThatHasFreedOneComesLate) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  HubJob job(cluster, keys(), "sgd:lr=0.5", "", {}, 2);
  job.make();
  push_first(job);
  const SimulatedTrainer& late = *job.trainers()[1];
  for (const auto& trainer : job.trainers()) {
    if (trainer.get() != &late) free_hub(cluster, *trainer);
  }
  job.make(2);
  free_hub(cluster, late);
  push_first(job);
  push_gradients(job, 1);
  job.end();
  leave_all(cluster, job.trainers());
}

// Those of a hub that still stands elsewhere take what is on its way.
TEST(Hubs, KeepTheBuffersOfPushesThatFailAsLongAsFramesPointThere) {
  SimulatedCluster cluster(settings_of({{"topology", "star:4"}, {"rate", "1mbit"}}));
  HubJob job(cluster, keys(), "sgd:lr=0.5", "", {3});
  job.make();
  push_first(job);
  Trainers& trainers = job.trainers();
  SimulatedTrainer& pushing = *trainers[1];
  free_hub(cluster, *trainers[2]);
  job.push(pushing, 1, shared::PushKind::gradients,
           [](unsigned, std::uint32_t, std::uint64_t) { return 1.0F; });
  ASSERT_TRUE(cluster.run_until([&] { return cluster.segment_packets_in_use() != 0; }, kSecond));
  cluster.leave(*trainers[2], dataplane::Departure::orderly);
  ASSERT_TRUE(cluster.run_until([&] { return pushing.idle(); }, 60 * kSecond));
  EXPECT_EQ(cluster.segment_packets_in_use(), 0U);
  expect_failed_for(cluster, pushing, "rank 2");
  trainers.pop_back();
  leave_all(cluster, trainers);
}

// One has its hub before its job is reset, the other asks for it afterwards.
TEST(Hubs, TellInWhichEpochOfTheirJobTheyWereMade) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  HubJob job(cluster, keys(), "sgd:lr=0.5");
  Trainers& trainers = job.trainers();
  job.ask(*trainers[0]);
  EXPECT_EQ(job.await(*trainers[0]).epoch, 0U);
  for (const auto& trainer : trainers) {
    fill_and_submit(*trainer, Collective{.count = 50 + trainer->rank()});
  }
  ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  EXPECT_EQ(job.state(*trainers[0]).end_code, GRADCUBE_EMISMATCH);
  job.ask(*trainers[1]);
  EXPECT_EQ(job.await(*trainers[1]).epoch, 1U);
  leave_all(cluster, trainers);
}

// Rank 3's last sum of four overflows; the other lane gives rank 0, which has no part in that, time
// to complete all.
TEST(Hubs, TellWhyTheyEndOnAServerWhoseCollectivesAllSucceed) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}, {"rate", "100mbit"}}));
  constexpr auto kType = aggregation::DataType::float32;
  HubJob job(cluster, {{"bias", 10, kType}, {"fc", 50'000, kType}}, "sgd:lr=0.5", "", {}, 1, 4096,
             2);
  job.make();
  push_first(job);
  Trainers& trainers = job.trainers();
  SimulatedTrainer& pushing = *trainers[0];
  const std::uint64_t push = job.push(pushing, 0, shared::PushKind::gradients,
                                      [](unsigned, std::uint32_t, std::uint64_t) { return 1.0F; });
  for (const auto& trainer : trainers) {
    fill_and_submit(*trainer, {.offset = shared::kHeapOffset + 8192, .count = 40'000, .lane = 1});
    constexpr std::uint64_t kCount = 500;
    fill_and_submit(*trainer, {.count = kCount,
                               .dtype = aggregation::DataType::int32,
                               .operation = aggregation::Operation::average,
                               .kind = control::CollectiveKind::reduce_scatter,
                               .overflows = true});
    const std::int32_t large = 600'000'000;
    std::memcpy(trainer->at(shared::kHeapOffset) + (kCount - 1) * sizeof(large), &large,
                sizeof(large));
  }
  ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  for (const shared::Completion& end : pushing.take_completions()) {
    EXPECT_EQ(end.code, end.request == push ? GRADCUBE_EOVERFLOW : 0);
    if (end.request != push) continue;
    const shared::Notice told = cluster.told(pushing).back().notice;
    EXPECT_EQ(told.number, end.notice);
    EXPECT_EQ(told.code, GRADCUBE_EOVERFLOW) << told.text;
  }
  leave_all(cluster, trainers);
}

// Nobody knows which of them is wrong.
TEST(Hubs, EndTheirJobWhenTrainersPushDifferently) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}}));
  HubJob job(cluster, keys(), "sgd:lr=0.5");
  job.make();
  const auto value = [](unsigned, std::uint32_t, std::uint64_t) { return 1.0F; };
  job.push_all(shared::PushKind::weights, value);
  for (const auto& trainer : job.trainers()) {
    job.push(*trainer, 2, shared::PushKind::gradients, value,
             trainer->rank() == 1 ? 0.25 : shared::kOwnRate);
  }
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(job.trainers()); }, 60 * kSecond));
  for (const auto& trainer : job.trainers()) {
    const std::vector<shared::Completion> ends = trainer->take_completions();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].code, GRADCUBE_EPEER);
    EXPECT_NE(ends[0].notice, 0U) << "and it is said why";
    bool explained = false;
    for (const Told& told : cluster.told(*trainer)) {
      explained = explained || std::string(told.notice.text).find("\"fc\"") != std::string::npos;
    }
    EXPECT_TRUE(explained) << "at server " << trainer->server();
  }
  leave_all(cluster, job.trainers());
}

// The hub is gone with the trainer, and all that is pushed ends.
// It ends for all when the first leaves. A message that nobody has received then concerns the one
// who sent it, who is told.
TEST(Hubs, EndTheirJobInOrderWhateverMessagesWait) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}}));
  HubJob job(cluster, keys(), "sgd");
  job.make();
  push_first(job);
  SimulatedTrainer& sender = *job.trainers()[1];
  shared::Submission message{};
  message.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
  message.message.peer = 2;
  message.offset = shared::kHeapOffset;
  message.count = 100;
  const std::uint64_t sent = sender.submit(message);
  cluster.run_for(kMillisecond);
  cluster.leave(*job.trainers()[0], dataplane::Departure::orderly);
  const auto ended = [&] {
    return sender.header().submission_tail == sender.header().completion_tail;
  };
  ASSERT_TRUE(cluster.run_until(ended, 30 * kSecond));
  const auto completions = sender.take_completions();
  ASSERT_EQ(completions.size(), 1U);
  EXPECT_EQ(completions[0].request, sent);
  EXPECT_EQ(completions[0].code, GRADCUBE_EPEER);
  EXPECT_TRUE(cluster.log().empty()) << cluster.log().front();
  job.trainers().erase(job.trainers().begin());
  leave_all(cluster, job.trainers());
}

TEST(Hubs, EndAllPushesWhenATrainerDies) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}}));
  HubJob job(cluster, keys(), "sgd:lr=0.5");
  job.make();
  const auto value = [](unsigned, std::uint32_t, std::uint64_t) { return 1.0F; };
  job.push_all(shared::PushKind::weights, value);
  Trainers& trainers = job.trainers();
  for (std::size_t i = 0; i + 1 < trainers.size(); ++i) {
    job.push(*trainers[i], 1, shared::PushKind::gradients, value);
  }
  cluster.run_for(10 * kMillisecond);
  cluster.leave(*trainers.back(), dataplane::Departure::death);
  trainers.pop_back();
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 60 * kSecond));
  for (const auto& trainer : trainers) {
    const std::vector<shared::Completion> ends = trainer->take_completions();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].code, GRADCUBE_EPEER);
  }
  leave_all(cluster, trainers);
}

}  // namespace
}  // namespace gradcube::simulation
