// Hubs that a server without trainers aggregates, under a virtual clock.

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "dataplane/daemon/hub/aggregated_hubs.h"
#include "tests/simulation/hub_job.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

constexpr unsigned kSteps = 4;

std::vector<control::HubKey> small_keys() {
  constexpr auto kType = aggregation::DataType::float32;
  return {{"bias", 10, kType}, {"conv", 9'000, kType}, {"fc", 3'001, kType}};
}

// The status of the aggregator shows the hub, and no other server's does.
void expect_shown(SimulatedCluster& cluster, std::uint32_t aggregator) {
  const std::vector<dataplane::HubFacts> hubs = cluster.nodes().hubs();
  ASSERT_EQ(hubs.size(), 1U);
  EXPECT_EQ(hubs[0].aggregator, aggregator);
  EXPECT_EQ(hubs[0].call.job, "hub");
  EXPECT_EQ(dataplane::progress_name(hubs[0].state.progress), "running");
  EXPECT_EQ(hubs[0].call.members.size(), cluster.servers() - 1);
  EXPECT_EQ(hubs[0].keys, small_keys().size());
  std::uint64_t elements = 0;
  for (const control::HubKey& key : small_keys()) elements += key.elements;
  EXPECT_GE(hubs[0].weights_bytes, 4 * elements);
  EXPECT_GT(hubs[0].memory_bytes, 3 * hubs[0].weights_bytes) << "Adam's state is here alone";
  EXPECT_GT(hubs[0].reserved_bytes, 0U);
  EXPECT_EQ(cluster.nodes().job_names().at(hubs[0].call.hub.job), "hub")
      << "by which flows are shown";
}

std::vector<std::uint8_t> trained_with_aggregator(const std::string& topology,
                                                  std::uint32_t aggregator, const char* loss,
                                                  std::uint64_t seed, const std::string& rate = "",
                                                  bool accumulates = false) {
  SimulationSettings settings =
      settings_of({{"topology", topology}, {"loss", loss}, {"mtu", "1500"}});
  if (!rate.empty()) control::apply_setting(settings.cluster, "rate", rate, "rate");
  settings.seed = seed;
  SimulatedCluster cluster(settings);
  HubJob job(cluster, small_keys(), "adam:lr=0.01", "", aggregator, 1, 4096, 1, accumulates);
  job.make();
  expect_shown(cluster, aggregator);
  push_first(job);
  for (unsigned round = 1; round < kSteps; ++round) {
    accumulates ? accumulate_and_apply(job, round) : push_gradients(job, round);
  }
  const std::vector<std::uint8_t> weights = job.weights(*job.trainers()[0]);
  for (const auto& trainer : job.trainers()) EXPECT_EQ(job.weights(*trainer), weights);
  // Whether they free the hub or just leave, the aggregator is told that it is over.
  if (seed % 2 == 0) job.end();
  leave_all(cluster, job.trainers());
  EXPECT_TRUE(
      cluster.run_until([&] { return cluster.nodes().at(aggregator).idle(); }, 3 * kSecond));
  EXPECT_TRUE(cluster.nodes().hubs().empty());
  return weights;
}

// Over relays, too; and at the job's first server as at its last.
TEST(HubAggregators, GiveTheSameWeightsWhateverIsLost) {
  for (const auto& [topology, aggregator] :
       {std::pair("star:4", 3U), std::pair("star:4", 0U), std::pair("bcube:2,2", 3U)}) {
    const std::vector<std::uint8_t> weights = trained_with_aggregator(topology, aggregator, "0", 1);
    for (const std::uint64_t seed : {2U, 3U}) {
      EXPECT_EQ(trained_with_aggregator(topology, aggregator, "0.05", seed), weights)
          << topology << ", aggregator " << aggregator << ", seed " << seed;
    }
  }
}

TEST(HubAggregators, AccumulateAndApplyWhateverIsLost) {
  const auto weights = trained_with_aggregator("bcube:2,2", 3, "0", 1, "", true);
  EXPECT_NE(weights, trained_with_aggregator("bcube:2,2", 3, "0", 1));
  for (const std::uint64_t seed : {2U, 3U}) {
    EXPECT_EQ(trained_with_aggregator("bcube:2,2", 3, "0.05", seed, "", true), weights) << seed;
  }
}

// PHub's PBox: with one port that is as fast as all workers, or with as many as they.
TEST(HubAggregators, GiveTheSameWeightsWhateverPortsTheyHave) {
  const std::vector<std::uint8_t> weights = trained_with_aggregator("star:4", 3, "0", 1);
  for (const char* rate : {"100mbit,server3=1gbit", "100mbit,server3=3x100mbit"}) {
    for (const auto& [loss, seed] : {std::pair("0", 1U), std::pair("0.02", 2U)}) {
      EXPECT_EQ(trained_with_aggregator("star:4", 3, loss, seed, rate), weights) << rate;
    }
  }
}

// A hub that server 3 aggregates, with its first weights.
class HubAggregatorFailures : public testing::Test {
 protected:
  static constexpr bcube::ServerId kAggregator = 3;

  void SetUp() override {
    job_.make();
    push_first(job_);
  }
  void TearDown() override { leave_all(cluster_, job_.trainers()); }

  // All trainers push the key; the trainer of rank 1 perhaps with another learning rate.
  void push(std::uint32_t key, double rate_of_one = shared::kOwnRate) {
    for (const auto& trainer : job_.trainers()) {
      job_.push(
          *trainer, key, shared::PushKind::gradients,
          [](unsigned, std::uint32_t, std::uint64_t) { return 1.0F; },
          trainer->rank() == 1 ? rate_of_one : shared::kOwnRate);
    }
  }
  // All that is pushed ends with the job, and every trainer is told these words.
  void expect_ended(const std::string& words) {
    EXPECT_TRUE(cluster_.run_until([&] { return all_idle(job_.trainers()); }, 60 * kSecond));
    for (const auto& trainer : job_.trainers()) {
      const std::vector<shared::Completion> ends = trainer->take_completions();
      ASSERT_EQ(ends.size(), 1U);
      EXPECT_EQ(ends[0].code, GRADCUBE_EPEER);
      bool named = false;
      for (const Told& told : cluster_.told(*trainer)) {
        named = named || std::string(told.notice.text).find(words) != std::string::npos;
      }
      EXPECT_TRUE(named) << "no " << words << " at server " << trainer->server();
    }
  }

  SimulatedCluster cluster_{settings_of({{"topology", "star:4"}})};
  HubJob job_{cluster_, small_keys(), "sgd:lr=0.5", "", kAggregator};
};

TEST_F(HubAggregatorFailures, NameTheAggregatorToAllTrainersWhenItDies) {
  cluster_.kill(kAggregator);
  const std::int64_t killed = cluster_.now();
  push(1);
  expect_ended("server [3]");
  EXPECT_LT(cluster_.now() - killed, 4 * kSecond);
}

// What a new daemon has is not what the old one had.
TEST_F(HubAggregatorFailures, TellOfAnAggregatorThatWasStartedAnew) {
  cluster_.kill(kAggregator);
  cluster_.start_anew(kAggregator);
  push(1);
  expect_ended("started anew");
}

// Its caller gone, it frees what it has: nobody tells it.
TEST_F(HubAggregatorFailures, LeaveNothingOfAJobThatHasDied) {
  cluster_.kill(0);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(job_.trainers()); }, 60 * kSecond));
  job_.trainers().erase(job_.trainers().begin());
  leave_all(cluster_, job_.trainers());
  job_.trainers().clear();
  EXPECT_TRUE(
      cluster_.run_until([&] { return cluster_.nodes().at(kAggregator).idle(); }, 60 * kSecond));
}

TEST_F(HubAggregatorFailures, TellTrainersWhichKeyTheyHavePushedDifferently) {
  push(2, 0.25);
  expect_ended("\"fc\"");
}

}  // namespace
}  // namespace gradcube::simulation
