// A daemon of the cluster that has its key and lies: it tells others whatever the byte form of
// messages allows (docs/security.md). As itself it can spoil jobs that it is a member of, and no
// others. In others' names it can end these, too. It never ends a daemon, nor leaves anything
// there.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "control/jobs/message_codec.h"
#include "control/plan/algorithms.h"
#include "tests/simulation/work.h"
#include "tests/support/random_message.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

constexpr const char* kTopology = "star:4";

class Liar {
 public:
  Liar(SimulatedCluster& cluster, bcube::ServerId server, bool in_others_names, std::uint64_t seed)
      : cluster_(cluster), server_(server), in_others_names_(in_others_names), random_(seed) {}

  // To another server, about a job that there is as a rule.
  void lie() {
    const bcube::AddressSpace& space = cluster_.plan().space();
    control::NodeMessage lie =
        control::random_message(random_() % control::kMessageKinds, random_, space);
    if (!in_others_names_) lie.from = server_;
    do {
      lie.to = static_cast<bcube::ServerId>(below(space.servers()));
    } while (lie.to == lie.from || lie.to == server_);
    std::visit([&](auto& body) { aim(lie, body); }, lie.body);
    const std::vector<std::uint8_t> bytes = control::encode_message(lie, space);
    std::optional<control::NodeMessage> told = control::decode_message(bytes, space);
    ASSERT_TRUE(told.has_value());
    told->sender = kIncarnation;
    cluster_.nodes().messages().push_back(*told);
  }

 private:
  static constexpr control::Incarnation kIncarnation = 1;  // of all daemons

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool often() { return below(4) != 0; }

  template <typename Body>
  void aim(const control::NodeMessage&, Body& body) {
    const std::vector<dataplane::JobFacts> jobs = cluster_.jobs();
    if (jobs.empty()) return;
    if constexpr (requires { body.hub.job; }) body.hub.job = jobs[below(jobs.size())].id;
  }
  void aim(const control::NodeMessage& lie, control::JobMessage& message) {
    message.from = {lie.from, often() ? kIncarnation : below(3), below(4)};
    message.to = {lie.to, often() ? kIncarnation : below(3), below(4)};
    const std::vector<dataplane::JobFacts> jobs = cluster_.jobs();
    if (jobs.empty()) return;
    const dataplane::JobFacts& job = jobs[below(jobs.size())];
    message.job = often() ? job.id : protocol::kNoJob;
    message.name = job.name;
    message.owner = job.owner;
    std::visit([&](auto& body) { fit(job, body); }, message.body);
  }
  // What is likely to be taken seriously.
  template <typename Body>
  void fit(const dataplane::JobFacts& job, Body& body) {
    if constexpr (requires { body.epoch; }) body.epoch = job.epoch + below(2);
    if constexpr (requires { body.options; }) {
      if (often()) body.options = job.options;
    }
    if constexpr (requires { body.cut; }) {
      for (auto* numbers : {&body.cut.done, &body.cut.failed}) {
        numbers->assign(job.options.lanes.size(), 0);
        for (std::uint64_t& number : *numbers) number = often() ? below(20) : random_();
      }
    }
    if constexpr (std::is_same_v<Body, control::Prepare>) {
      body.job.id = job.id;
      body.job.name = job.name;
      body.job.epoch = job.epoch + below(2);
      if (often()) body.job.options = job.options;
      for (control::JobMember& member : body.job.members) {
        member.incarnation = kIncarnation;
        member.attempt = below(4);
      }
    }
  }

  SimulatedCluster& cluster_;
  bcube::ServerId server_;
  bool in_others_names_;
  std::mt19937_64 random_;
};

class LyingPeers : public testing::TestWithParam<int> {
 protected:
  static SimulationSettings settings() {
    SimulationSettings settings = settings_of({{"topology", kTopology}, {"mtu", "1500"}});
    settings.seed = static_cast<std::uint64_t>(GetParam());
    settings.links_are_watched = true;
    return settings;
  }

  Trainers join(const std::string& job, const std::vector<bcube::ServerId>& members) {
    Trainers trainers;
    for (const bcube::ServerId server : members) {
      dataplane::TrainerRequest request{job, 1000 + server};
      request.heap_bytes = heap_for(collective_);
      request.options.lanes = {{"ring", 0}};
      request.options.members = members;
      trainers.push_back(cluster_.join(server, request));
    }
    return trainers;
  }

  void lie_and_work(bool in_others_names) {
    Liar liar(cluster_, liar_, in_others_names, settings().seed);
    const auto lie = [&] {
      for (unsigned lies = 0; lies < 40; ++lies) {
        liar.lie();
        cluster_.run_for(20'000);
      }
    };
    const Trainers spoiled = join("spoiled", {0, 1, 2, 3});
    lie();
    const Trainers others = join("others", others_);
    for (unsigned round = 0; round < 10; ++round) {
      for (const Trainers* job : {&spoiled, &others}) {
        for (const auto& trainer : *job) {
          if (trainer->admitted()) fill_and_submit(*trainer, collective_);
        }
      }
      lie();
      const bool ended = cluster_.run_until([&] { return all_idle(others); }, 10 * kSecond);
      if (in_others_names) continue;
      ASSERT_TRUE(ended) << "in round " << round;
      expect_right(plan_, others, collective_);
    }
    for (const Trainers* job : {&spoiled, &others}) {
      for (const auto& trainer : *job) cluster_.leave(*trainer, dataplane::Departure::death);
    }
    cluster_.kill(liar_);
    cluster_.run_until([&] { return cluster_.idle(); }, 60 * kSecond);
    for (const bcube::ServerId server : others_) {
      EXPECT_TRUE(cluster_.nodes().at(server).idle()) << "server " << server;
    }
    EXPECT_EQ(cluster_.packets_in_use(), 0u);
  }

  SimulatedCluster cluster_{settings()};
  bcube::ServerId liar_ = static_cast<bcube::ServerId>(GetParam()) % 4;
  std::vector<bcube::ServerId> others_ = [this] {
    std::vector<bcube::ServerId> all{0, 1, 2, 3};
    std::erase(all, liar_);
    return all;
  }();
  control::Plan plan_ =
      control::make_plan("ring", control::parse_topology("star:3", "test"), "test");
  Collective collective_ = [] {
    Collective collective;
    collective.count = 1'003;
    return collective;
  }();
};

TEST_P(LyingPeers, SpoilNoJobOfOthersInTheirOwnName) { lie_and_work(false); }

TEST_P(LyingPeers, EndNoDaemonAndLeaveNothingInAnyName) { lie_and_work(true); }

INSTANTIATE_TEST_SUITE_P(Seeds, LyingPeers, testing::Range(0, 40));

}  // namespace
}  // namespace gradcube::simulation
