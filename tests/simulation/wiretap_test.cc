// Somebody on the wires without the key, who does all he can, all the time.

#include <string>

#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

class Wiretapped : public testing::Test {
 protected:
  static constexpr unsigned kRounds = 30;

  void make(bool authenticated, unsigned lcores = 1, double keeps = 0.01) {
    SimulationSettings settings =
        settings_of({{"topology", "bcube:3,2"}, {"mtu", "1500"}, {"greeting", "10ms"}});
    settings.lcores = lcores;
    settings.links_are_watched = true;
    settings.messages_pass_the_fabric = true;
    settings.frames_are_authenticated = authenticated;
    settings.attack = {
        .from = 0, .until = 600 * kSecond, .cuts = keeps, .delays = keeps, .sends = 1};
    cluster_ = std::make_unique<SimulatedCluster>(settings);
    collective_.count = 30'000;
  }
  // How many elements are wrong on all servers, after an all-reduce that has ended everywhere.
  std::uint64_t wrong_after_one(const Trainers& trainers) {
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective_);
    EXPECT_TRUE(cluster_->run_until([&] { return all_idle(trainers); }, 60 * kSecond));
    const Expected expected = expected_result(cluster_->plan(), {}, collective_, 0);
    std::uint64_t wrong = 0;
    for (const auto& trainer : trainers) {
      for (const auto& completion : trainer->take_completions()) EXPECT_EQ(completion.code, 0);
      wrong += wrong_elements(*trainer, collective_, expected);
      EXPECT_TRUE(cluster_->told(*trainer).empty()) << "its job goes on";
    }
    return wrong;
  }
  Trainers join() {
    Trainers trainers = cluster_->join_all("victim", heap_for(collective_));
    const auto admitted = [&] {
      return std::all_of(trainers.begin(), trainers.end(),
                         [](const auto& trainer) { return trainer->admitted(); });
    };
    EXPECT_TRUE(cluster_->run_until(admitted, 60 * kSecond));
    return trainers;
  }
  std::uint64_t bad_macs() {
    return cluster_->counters().malformed[static_cast<std::size_t>(protocol::FrameError::bad_mac)];
  }

  std::unique_ptr<SimulatedCluster> cluster_;
  Collective collective_;
};

TEST_F(Wiretapped, EndsNoJobAndChangesNoSum) {
  for (const unsigned lcores : {1, 2}) {
    make(true, lcores);
    const Trainers trainers = join();
    for (unsigned round = 0; round < kRounds; ++round) {
      ASSERT_EQ(wrong_after_one(trainers), 0u) << round;
    }
    EXPECT_GT(bad_macs(), 1'000u);
    for (const char* kind :
         {"again", "changed", "spliced", "cut short", "made up", "kept", "delayed"}) {
      const auto& done = cluster_->wiretap()->done();
      EXPECT_TRUE(done.contains(kind) && done.at(kind) > 10) << kind;
    }
    for (const auto& trainer : trainers) cluster_->leave(*trainer, dataplane::Departure::orderly);
    cluster_.reset();
  }
}

// What links say of each other is as if he were not there, as long as he keeps nothing: three
// greetings in a row that do not arrive are a link that is down.
TEST_F(Wiretapped, TakesNoLinkDown) {
  make(true, 1, 0);
  const Trainers trainers = join();
  for (unsigned i = 0; i < 100; ++i) {
    cluster_->run_for(20 * kMillisecond);
    for (const auto& at : cluster_->cluster().engines()) {
      for (std::uint8_t level = 0; level < 2; ++level) {
        for (std::uint8_t digit = 0; digit < 3; ++digit) {
          EXPECT_TRUE(at.engine->settings().links->up({level, digit}))
              << at.engine->settings().server << " at " << i;
        }
      }
    }
  }
  EXPECT_GT(cluster_->counters().stale_greetings, 100u);
}

TEST_F(Wiretapped, ChangesSumsWhereFramesHaveNoMac) {
  make(false);
  const Trainers trainers = cluster_->join_all("victim", heap_for(collective_));
  std::uint64_t wrong = 0;
  for (unsigned round = 0; round < kRounds && wrong == 0; ++round) {
    for (const auto& trainer : trainers) {
      if (trainer->admitted()) fill_and_submit(*trainer, collective_);
    }
    cluster_->run_until([&] { return all_idle(trainers); }, kSecond);
    const Expected expected = expected_result(cluster_->plan(), {}, collective_, 0);
    for (const auto& trainer : trainers) {
      trainer->take_completions();
      if (!trainer->admitted()) continue;
      wrong += wrong_elements(*trainer, collective_, expected);
    }
  }
  EXPECT_GT(wrong, 0u) << "so he does what the MAC is there for";
}

}  // namespace
}  // namespace gradcube::simulation
