// A torus: cables in the place of switches. Every algorithm that runs there gives the right bits,
// with faults too, and collectives go around cables that fail.

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using LinkAt = dataplane::EmbeddedFabric::LinkAt;

// Those of all that fit the cluster.
std::vector<control::Plan> plans_on(const SimulatedCluster& cluster) {
  std::vector<control::Plan> plans;
  for (const std::string& name : control::algorithm_names()) {
    try {
      plans.push_back(control::make_plan(name, cluster.plan().topology(), "test"));
    } catch (const control::UsageError&) {
      // It needs switches, or a power of two of servers.
    }
  }
  return plans;
}

class OnATorus : public testing::TestWithParam<const char*> {};

TEST_P(OnATorus, EveryAlgorithmIsRightOverFaultyCables) {
  SimulatedCluster cluster(settings_of({{"topology", GetParam()},
                                        {"mtu", "1500"},
                                        {"loss", "0.02"},
                                        {"duplicate", "0.02"},
                                        {"reorder", "0.05"},
                                        {"corrupt", "0.01"}}));
  Collective collective;
  collective.count = 20'011;
  const std::vector<control::Plan> plans = plans_on(cluster);
  EXPECT_GE(plans.size(), 8u);
  for (const control::Plan& plan : plans) {
    SCOPED_TRACE(plan.algorithm());
    const Trainers trainers = cluster.join_all("torus", heap_for(collective), plan.algorithm());
    allreduce(cluster, plan, trainers, collective);
    leave_all(cluster, trainers);
  }
  EXPECT_GT(cluster.counters().resent, 0u);
}

TEST_P(OnATorus, AJobThatAsksForNoneGetsTheRingsOfHips) {
  SimulatedCluster cluster(settings_of({{"topology", GetParam()}}));
  EXPECT_EQ(cluster.plan().algorithm(), "hips:ring");
  Collective collective;
  collective.count = 50'021;
  const Trainers trainers = cluster.join_all("rings", heap_for(collective));
  allreduce(cluster, trainers, collective);
  EXPECT_EQ(cluster.counters().relayed, 0u) << "all peers are adjacent";
  EXPECT_EQ(cluster.counters().resent, 0u);
  leave_all(cluster, trainers);
}

INSTANTIATE_TEST_SUITE_P(Topologies, OnATorus,
                         testing::Values("torus:3,1", "torus:3,2", "torus:4,2", "torus:3,3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char letter) { return letter == ':' || letter == ','; }, '_');
                           return name;
                         });

// A whole ring is more than 8 hops long, which only rings among neighbours need not care for.
TEST(ALongRing, RunsWhereNoFrameReachesAllServers) {
  SimulatedCluster cluster(settings_of({{"topology", "torus:19,1"}, {"loss", "0.01"}}));
  Collective collective;
  collective.count = 30'011;
  for (const char* algorithm : {"hips:ring", "ring"}) {
    const control::Plan plan = control::make_plan(algorithm, cluster.plan().topology(), "test");
    const Trainers trainers = cluster.join_all("torus", heap_for(collective), algorithm);
    allreduce(cluster, plan, trainers, collective);
    leave_all(cluster, trainers);
  }
}

// No server of the job is next to another: its frames are all relayed, and so are greetings.
TEST(AJobOfServersThatAreNotAdjacent, LearnsThatOneOfThemHasDied) {
  for (const bool in_frames : {false, true}) {
    SCOPED_TRACE(in_frames ? "messages in frames" : "messages beside the fabric");
    SimulationSettings settings = settings_of({{"topology", "torus:4,1"}, {"greeting", "10ms"}});
    settings.links_are_watched = true;
    settings.messages_pass_the_fabric = in_frames;
    SimulatedCluster cluster(settings);
    Collective collective;
    collective.count = 10'007;
    dataplane::TrainerRequest request{"across", 1000, 1000, heap_for(collective)};
    request.options.lanes.resize(1);
    request.options.members = {0, 2};
    Trainers trainers;
    for (const bcube::ServerId server : request.options.members) {
      trainers.push_back(cluster.join(server, request));
    }
    const auto all_admitted = [&] { return trainers[0]->admitted() && trainers[1]->admitted(); };
    ASSERT_TRUE(cluster.run_until(all_admitted, kSecond));
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
    ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
    trainers[0]->take_completions();
    cluster.kill(2);
    fill_and_submit(*trainers[0], collective);
    std::vector<shared::Completion> completions;
    const auto ended = [&] { return !(completions = trainers[0]->take_completions()).empty(); };
    ASSERT_TRUE(cluster.run_until(ended, 3 * kSecond));
    EXPECT_EQ(completions[0].code, GRADCUBE_EPEER);
    const std::string text = cluster.told(*trainers[0]).back().notice.text;
    EXPECT_NE(text.find("[2]"), std::string::npos) << text;
  }
}

// A cable that were used in one direction alone, or by one of two rings at a time, would take twice
// as long.
TEST(BothDirections, AreBusyOnEveryCableAllTheTime) {
  SimulatedCluster cluster(settings_of({{"topology", "torus:3,2"}, {"rate", "100mbit"}}));
  Collective collective;
  collective.count = 1'000'000;
  const Trainers trainers = cluster.join_all("both", heap_for(collective));
  const double bound = 8.0 / 18 * static_cast<double>(collective.bytes()) * 8e9 / 100e6;
  const auto taken = static_cast<double>(allreduce(cluster, trainers, collective));
  EXPECT_GT(taken, bound);
  EXPECT_LT(taken, 1.3 * bound);
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  EXPECT_EQ(cluster.counters().resent, 0u);
  leave_all(cluster, trainers);
}

class FailingCables : public testing::TestWithParam<const char*> {
 protected:
  FailingCables() {
    collective_.count = 150'007;
    SimulationSettings settings =
        settings_of({{"topology", "torus:3,2"}, {"rate", "1gbit"}, {"greeting", "10ms"}});
    settings.links_are_watched = true;
    cluster_ = std::make_unique<SimulatedCluster>(settings);
    plan_ = std::make_unique<control::Plan>(
        control::make_plan(GetParam(), cluster_->plan().topology(), "test"));
    trainers_ = cluster_->join_all("torus", heap_for(collective_), GetParam());
    allreduce(*cluster_, *plan_, trainers_, collective_);
  }

  void set_up(bcube::ServerId server, unsigned port, bool up) {
    dataplane::EmbeddedFabric& fabric = cluster_->cluster().emulated();
    std::vector<LinkAt> links;
    for (const LinkAt& link : fabric.links()) {
      if (link.server == server && link.server_port == port) links.push_back(link);
    }
    ASSERT_EQ(links.size(), 1u);
    fabric.change_impairments(links, [up](dataplane::Impairments impairments) {
      impairments.up = up;
      return impairments;
    });
  }
  bool is_up(bcube::ServerId server, bcube::Hop hop) {
    return cluster_->nodes().at(server).engines().links().up(hop);
  }

  Collective collective_;
  std::unique_ptr<SimulatedCluster> cluster_;
  std::unique_ptr<control::Plan> plan_;
  Trainers trainers_;
};

TEST_P(FailingCables, AreGoneAroundWhicheverItIsAndFoundAtBothEnds) {
  const bcube::AddressSpace& space = cluster_->plan().space();
  const bcube::ServerId server = space.parse("1,2");
  for (unsigned port = 0; port < space.ports(); ++port) {
    SCOPED_TRACE(port);
    for (const auto& trainer : trainers_) fill_and_submit(*trainer, collective_);
    cluster_->run_for(kMillisecond / 2);
    ASSERT_FALSE(all_idle(trainers_));
    set_up(server, port, false);
    EXPECT_TRUE(cluster_->run_until([&] { return all_idle(trainers_); }, kSecond));
    expect_right(*plan_, trainers_, collective_);

    cluster_->run_for(100 * kMillisecond);
    const bcube::NeighbourTable table(space, server);
    for (unsigned other = 0; other < space.ports(); ++other) {
      const bcube::Neighbour& far = table.behind(other).front();
      const auto level = static_cast<std::uint8_t>(far.level);
      const auto own = static_cast<std::uint8_t>(space.digit(server, far.level));
      EXPECT_EQ(is_up(server, {level, static_cast<std::uint8_t>(far.digit)}), other != port);
      EXPECT_EQ(is_up(far.server, {level, own}), other != port);
    }
    allreduce(*cluster_, *plan_, trainers_, collective_);
    EXPECT_GT(cluster_->counters().reroutes, 0u);
    set_up(server, port, true);
    cluster_->run_for(3 * kSecond);
    allreduce(*cluster_, *plan_, trainers_, collective_);
  }
  leave_all(*cluster_, trainers_);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, FailingCables, testing::Values("hips:ring", "mesh"),
                         [](const auto& info) {
                           return info.param == std::string("mesh") ? "Mesh" : "HipsRing";
                         });

}  // namespace
}  // namespace gradcube::simulation
