// Hubs that a server without trainers aggregates, under a virtual clock.

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdexcept>
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

using Servers = std::vector<std::uint32_t>;

// The status of each aggregator shows the hub, and no other server's does.
void expect_shown(SimulatedCluster& cluster, const Servers& aggregators) {
  const std::vector<dataplane::HubFacts> hubs = cluster.nodes().hubs();
  ASSERT_EQ(hubs.size(), aggregators.size());
  std::uint64_t elements = 0;
  for (const control::HubKey& key : small_keys()) elements += key.elements;
  for (std::size_t i = 0; i < hubs.size(); ++i) {
    EXPECT_EQ(hubs[i].aggregator, aggregators[i]);
    EXPECT_EQ(hubs[i].call.job, "hub");
    EXPECT_EQ(dataplane::progress_name(hubs[i].state.progress), "running");
    EXPECT_EQ(hubs[i].call.members.size(), cluster.servers() - aggregators.size());
    EXPECT_EQ(hubs[i].keys, small_keys().size());
    EXPECT_GE(hubs[i].weights_bytes, 4 * elements);
    EXPECT_GT(hubs[i].reserved_bytes, 0U);
    EXPECT_EQ(cluster.nodes().job_names().at(hubs[i].call.hub.job), "hub")
        << "by which flows are shown";
  }
}

std::vector<std::uint8_t> trained_with_aggregators(const std::string& topology,
                                                   const Servers& aggregators, const char* loss,
                                                   std::uint64_t seed, const std::string& rate = "",
                                                   bool accumulates = false) {
  SimulationSettings settings =
      settings_of({{"topology", topology}, {"loss", loss}, {"mtu", "1500"}});
  if (!rate.empty()) control::apply_setting(settings.cluster, "rate", rate, "rate");
  settings.seed = seed;
  SimulatedCluster cluster(settings);
  HubJob job(cluster, small_keys(), "adam:lr=0.01", "", aggregators, 1, 4096, 1, accumulates);
  job.make();
  expect_shown(cluster, aggregators);
  push_first(job);
  for (unsigned round = 1; round < kSteps; ++round) {
    accumulates ? accumulate_and_apply(job, round) : push_gradients(job, round);
  }
  const std::vector<std::uint8_t> weights = job.weights(*job.trainers()[0]);
  for (const auto& trainer : job.trainers()) EXPECT_EQ(job.weights(*trainer), weights);
  // Whether they free the hub or just leave, the aggregator is told that it is over.
  if (seed % 2 == 0) job.end();
  leave_all(cluster, job.trainers());
  const auto all_are_idle = [&] {
    return std::ranges::all_of(aggregators, [&](auto a) { return cluster.nodes().at(a).idle(); });
  };
  EXPECT_TRUE(cluster.run_until(all_are_idle, 3 * kSecond));
  EXPECT_TRUE(cluster.nodes().hubs().empty());
  return weights;
}

// Of the hub at each of servers 3, 4, ....
std::vector<double> memory_with(const char* optimizer, unsigned aggregators) {
  Servers servers;
  for (unsigned i = 0; i < aggregators; ++i) servers.push_back(3 + i);
  SimulatedCluster cluster(settings_of({{"topology", fmt::format("star:{}", 3 + aggregators)}}));
  HubJob job(cluster, small_keys(), optimizer, "", servers);
  job.make();
  std::vector<double> memory;
  for (const dataplane::HubFacts& hub : cluster.nodes().hubs()) {
    memory.push_back(static_cast<double>(hub.memory_bytes));
  }
  leave_all(cluster, job.trainers());
  return memory;
}

TEST(HubAggregators, HaveEachItsPartOfTheOptimizersState) {
  double elements = 0;
  for (const control::HubKey& key : small_keys()) elements += static_cast<double>(key.elements);
  for (const unsigned aggregators : {1U, 2U, 3U}) {
    const std::vector<double> without = memory_with("sgd", aggregators);
    const std::vector<double> with = memory_with("adam", aggregators);
    ASSERT_EQ(without.size(), aggregators);
    ASSERT_EQ(with.size(), aggregators);
    for (unsigned i = 0; i < aggregators; ++i) {
      constexpr double kChunk = 4096;
      EXPECT_NEAR(with[i] - without[i], 2 * 4 * elements / aggregators, 2 * kChunk)
          << "aggregator " << i << " of " << aggregators;
    }
  }
}

// Over relays, too; and at the job's first server as at its last.
TEST(HubAggregators, GiveTheSameWeightsWhateverIsLost) {
  for (const auto& [topology, aggregator] :
       {std::pair("star:4", 3U), std::pair("star:4", 0U), std::pair("bcube:2,2", 3U)}) {
    const std::vector<std::uint8_t> weights =
        trained_with_aggregators(topology, {aggregator}, "0", 1);
    for (const std::uint64_t seed : {2U, 3U}) {
      EXPECT_EQ(trained_with_aggregators(topology, {aggregator}, "0.05", seed), weights)
          << topology << ", aggregator " << aggregator << ", seed " << seed;
    }
  }
}

TEST(HubAggregators, AccumulateAndApplyWhateverIsLost) {
  const auto weights = trained_with_aggregators("bcube:2,2", {3}, "0", 1, "", true);
  EXPECT_NE(weights, trained_with_aggregators("bcube:2,2", {3}, "0", 1));
  for (const std::uint64_t seed : {2U, 3U}) {
    EXPECT_EQ(trained_with_aggregators("bcube:2,2", {3}, "0.05", seed, "", true), weights) << seed;
  }
}

// PHub's PBox: with one port that is as fast as all workers, or with as many as they.
TEST(HubAggregators, GiveTheSameWeightsWhateverPortsTheyHave) {
  const std::vector<std::uint8_t> weights = trained_with_aggregators("star:4", {3}, "0", 1);
  for (const char* rate : {"100mbit,server3=1gbit", "100mbit,server3=3x100mbit"}) {
    for (const auto& [loss, seed] : {std::pair("0", 1U), std::pair("0.02", 2U)}) {
      EXPECT_EQ(trained_with_aggregators("star:4", {3}, loss, seed, rate), weights) << rate;
    }
  }
}

// Each adds what the trainers' servers send by ascending rank. PHub's racks have a PBox each.
TEST(HubAggregators, GiveTheSameWeightsHoweverManyShareTheChunks) {
  const std::vector<std::uint8_t> weights = trained_with_aggregators("bcube:2,2", {3}, "0", 1);
  const auto trained = [](const char* topology, const Servers& aggregators, const char* loss,
                          std::uint64_t seed) {
    return trained_with_aggregators(topology, aggregators, loss, seed);
  };
  EXPECT_EQ(trained("star:5", {3, 4}, "0", 1), weights);
  EXPECT_EQ(trained("star:5", {3, 4}, "0.05", 2), weights);
  EXPECT_EQ(trained("star:6", {0, 2, 5}, "0.02", 3), weights);
  EXPECT_EQ(trained("bcube:3x2", {2, 4, 5}, "0.02", 2), weights) << "over relays";
  const std::vector<std::uint8_t> in_racks = trained("star:13", {12}, "0", 1);
  EXPECT_EQ(trained("tree:4x4", {3, 7, 11, 15}, "0.01", 2), in_racks);
  EXPECT_EQ(trained("bcube:4,2", {3, 7, 11, 15}, "0.01", 3), in_racks);
}

// Frames take 8 hops at most: from a trainer to each aggregator, but not to the other trainers.
TEST(HubAggregators, StandBetweenTrainersThatAreTooFarFromEachOther) {
  SimulatedCluster cluster(settings_of({{"topology", "torus:18,1"}}));
  HubJob job(cluster, small_keys(), "sgd", "ps:4", {3, 5}, 1, 4096, 1, false, {0, 4, 9});
  job.make();
  push_first(job);
  push_gradients(job, 1);
  const std::vector<std::uint8_t> weights = job.weights(*job.trainers()[0]);
  for (const auto& trainer : job.trainers()) EXPECT_EQ(job.weights(*trainer), weights);
  leave_all(cluster, job.trainers());
  HubJob far(cluster, small_keys(), "sgd", "ps:4", {13}, 1, 4096, 1, false, {0, 4, 9});
  try {
    far.make();
    FAIL() << "it was made";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("9 hops away"), std::string::npos) << error.what();
  }
  leave_all(cluster, far.trainers());
}

TEST(HubAggregators, GiveTheSameWeightsWhateverPortsEachHas) {
  const std::vector<std::uint8_t> weights = trained_with_aggregators("star:4", {3}, "0", 1);
  for (const char* rate : {"100mbit,server3=1gbit", "100mbit,server3=3x100mbit",
                           "100mbit,server3=2x100mbit,server4=3x100mbit"}) {
    EXPECT_EQ(trained_with_aggregators("star:5", {3, 4}, "0.02", 2, rate), weights) << rate;
  }
}

// A hub that server 3 aggregates, with its first weights.
class HubAggregatorFailures : public testing::Test {
 protected:
  static constexpr bcube::ServerId kAggregator = 3;

  explicit HubAggregatorFailures(const Servers& aggregators = {kAggregator})
      : job_(cluster_, small_keys(), "sgd:lr=0.5", "", aggregators) {}
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
  HubJob job_;
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

// Servers 2 and 3 share its keys.
class HubOfTwoAggregatorsFailures : public HubAggregatorFailures {
 protected:
  HubOfTwoAggregatorsFailures() : HubAggregatorFailures({2, 3}) {}
};

TEST_F(HubOfTwoAggregatorsFailures, NameTheOneThatDiesAndFreeTheOther) {
  cluster_.kill(2);
  push(1);
  expect_ended("server [2]");
  EXPECT_TRUE(cluster_.run_until([&] { return cluster_.nodes().at(3).idle(); }, 60 * kSecond));
}

TEST_F(HubOfTwoAggregatorsFailures, TellOfTheOneThatWasStartedAnew) {
  cluster_.kill(kAggregator);
  cluster_.start_anew(kAggregator);
  push(1);
  expect_ended("server [3], has been started anew");
}

TEST_F(HubOfTwoAggregatorsFailures, LeaveNothingOfAJobThatHasDied) {
  cluster_.kill(0);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(job_.trainers()); }, 60 * kSecond));
  job_.trainers().erase(job_.trainers().begin());
  leave_all(cluster_, job_.trainers());
  job_.trainers().clear();
  EXPECT_TRUE(cluster_.run_until(
      [&] { return cluster_.nodes().at(2).idle() && cluster_.nodes().at(3).idle(); },
      60 * kSecond));
}

// Before all of them stand there is no hub, and who has made it lets it go.
TEST(HubAggregators, MakeNoHubWhereOneOfThemIsNotThere) {
  SimulatedCluster cluster(settings_of({{"topology", "star:4"}}));
  HubJob job(cluster, small_keys(), "sgd", "", {2, 3});
  cluster.kill(3);
  try {
    job.make();
    FAIL() << "it was made";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("server [3]"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(cluster.run_until([&] { return cluster.nodes().at(2).idle(); }, 10 * kSecond));
  leave_all(cluster, job.trainers());
}

}  // namespace
}  // namespace gradcube::simulation
