// A job whose servers are held one after the other because its trainers disagree: all that they
// agree on ends well on every server, whatever the disagreement is about and wherever it is met.
// GRADCUBE_TEST_SEED plays one seed.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "control/plan/collective_kind.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

using dataplane::EngineEvent;
using Counts = std::vector<dataplane::JobFacts::Trainer>;

constexpr std::uint64_t kSeeds = 150;
constexpr unsigned kLanes = 2;
constexpr std::uint64_t kCollectives = 5;  // in each lane
constexpr std::uint64_t kRoom = 64 << 10;  // for each one's buffer
constexpr std::int64_t kLongestPause = 100'000;
constexpr std::int64_t kLongestWay = 300'000;  // of the news of the disagreement
constexpr std::int64_t kPatience = 20 * kSecond;

class HeldJob {
 public:
  explicit HeldJob(std::uint64_t seed) : random_(seed), cluster_(settings(seed, random_)) {
    control::JobOptions options;
    options.lanes.resize(kLanes);
    for (bcube::ServerId server = 0; server < cluster_.servers(); ++server) {
      dataplane::JoinRequest request{"held", server};
      request.heap_bytes = kLanes * kCollectives * kRoom;
      request.options = options;
      trainers_.push_back(cluster_.join(request));
    }
    hold_at_.resize(trainers_.size(), dataplane::kNever);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (std::uint64_t i = 0; i < kCollectives; ++i) collectives_[lane].push_back(draw(lane, i));
    }
    wrong_ = 1 + random_.below(kCollectives);
    victim_ = static_cast<unsigned>(random_.below(trainers_.size()));
    cluster_.set_event_handler([this](const EngineEvent& event) { handle(event); });
  }

  void play() {
    submit_all();
    ASSERT_TRUE(cluster_.run_until([this] { return step(); }, kPatience)) << "nobody disagrees";
    EXPECT_TRUE(cluster_.run_until([this] { return has_ended_what_is_agreed(); }, kPatience));
    EXPECT_EQ(disagreement_->disagreement.collective, wrong_);
    expect_right_results();
    // The job goes on behind it.
    cluster_.set_event_handler({});
    cluster_.coordinator().handle(*disagreement_);
    EXPECT_TRUE(cluster_.run_until([this] { return all_idle(trainers_); }, kPatience));
    for (const auto& trainer : trainers_) trainer->take_completions();
    allreduce(cluster_, trainers_, Collective{.count = 1'000});
    leave_all(cluster_, trainers_);
  }

 private:
  static SimulationSettings settings(std::uint64_t seed, dataplane::SeededRandom& random) {
    constexpr std::array kTopologies = {"star:3", "bcube:2,2", "bcube:3,2", "bcube:2,3"};
    constexpr std::array kLosses = {"0", "0.02", "0.1"};
    SimulationSettings settings =
        settings_of({{"topology", kTopologies[random.below(kTopologies.size())]},
                     {"loss", kLosses[random.below(kLosses.size())]},
                     {"mtu", "1500"},
                     {"seed", std::to_string(seed)}});
    settings.seed = seed;
    settings.lcores = static_cast<unsigned>(1 + random.below(2));
    return settings;
  }

  Collective draw(unsigned lane, std::uint64_t index) {
    Collective drawn;
    drawn.lane = lane;
    drawn.offset += (lane * kCollectives + index) * kRoom;
    drawn.salt = index;
    return with_kind(drawn, random_.below(control::kCollectiveKinds.size()));
  }
  Collective with_kind(Collective collective, std::uint64_t kind) {
    collective.kind = control::kCollectiveKinds[kind];
    collective.count =
        collective.kind == control::CollectiveKind::barrier ? 0 : random_.below(10'000);
    if (control::is_rank_ordered(collective.kind)) {
      collective.count -= collective.count % trainers_.size();
    }
    return collective;
  }
  Collective another(const Collective& than) {
    Collective other = than;
    while (other.kind == than.kind && other.count == than.count) {
      other = with_kind(than, random_.below(control::kCollectiveKinds.size()));
    }
    return other;
  }

  // Each trainer at its own pace; some are held before they have submitted all.
  void submit_all() {
    for (std::uint64_t i = 0; i < kCollectives; ++i) {
      for (const auto& trainer : trainers_) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          const Collective& right = collectives_[lane][i];
          const bool disagrees = lane == 0 && i + 1 == wrong_ && trainer->rank() == victim_;
          fill_and_submit(*trainer, disagrees ? another(right) : right);
        }
        cluster_.run_for(static_cast<std::int64_t>(random_.below(kLongestPause)));
        step();
      }
    }
  }

  void handle(const EngineEvent& event) {
    if (event.kind != EngineEvent::Kind::disagreement) return;
    if (!disagreement_.has_value()) {
      for (std::int64_t& at : hold_at_) {
        at = cluster_.now() + static_cast<std::int64_t>(random_.below(kLongestWay));
      }
      disagreement_ = event;
    }
    EXPECT_EQ(event.disagreement.lane, 0u);
    if (event.disagreement.collective < disagreement_->disagreement.collective) {
      disagreement_ = event;
    }
  }

  // Holds the servers that the news has reached; true when it has reached all.
  bool step() {
    bool all = disagreement_.has_value();
    for (bcube::ServerId server = 0; server < hold_at_.size(); ++server) {
      cluster_.look_at(hold_at_[server]);
      if (cluster_.now() < hold_at_[server]) {
        all = false;
        continue;
      }
      for (const dataplane::EngineAt& at : cluster_.cluster().engines(server)) {
        at.poller->call([&] { at.engine->hold(disagreement_->job); });
      }
    }
    return all;
  }

  std::uint64_t agreed(unsigned lane, const Counts& counts) const {
    std::uint64_t least = lane == 0 ? wrong_ - 1 : kCollectives;
    for (const auto& trainer : counts) least = std::min(least, trainer.lanes[lane].submitted);
    return least;
  }
  Counts counts() { return cluster_.coordinator().facts().at(0).trainers; }
  bool has_ended_what_is_agreed() {
    const Counts now = counts();
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (const auto& trainer : now) {
        if (trainer.lanes[lane].completed < agreed(lane, now)) return false;
      }
    }
    return true;
  }

  void expect_right_results() {
    const Counts now = counts();
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (std::uint64_t i = 0; i < agreed(lane, now); ++i) {
        const Collective& collective = collectives_[lane][i];
        for (const auto& trainer : trainers_) {
          const Expected expected =
              expected_result(cluster_.plan(), {}, collective, trainer->rank());
          EXPECT_EQ(wrong_elements(*trainer, collective, expected), 0u)
              << "lane " << lane << ", number " << i + 1 << ", rank " << trainer->rank();
        }
      }
    }
    for (const auto& trainer : trainers_) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, 0);
      }
    }
  }

  dataplane::SeededRandom random_;
  SimulatedCluster cluster_;
  Trainers trainers_;
  std::array<std::vector<Collective>, kLanes> collectives_;
  std::uint64_t wrong_ = 1;  // the number in lane 0 of what the victim sees otherwise
  unsigned victim_ = 0;
  std::optional<EngineEvent> disagreement_;  // the first in order
  std::vector<std::int64_t> hold_at_;        // by server
};

TEST(HeldJobs, EndAllThatTheirTrainersAgreeOnOnEveryServer) {
  const char* one = std::getenv("GRADCUBE_TEST_SEED");
  const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 0) : 1;
  const std::uint64_t seeds = one != nullptr ? 1 : kSeeds;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
    HeldJob(seed).play();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace gradcube::simulation
