// Pollers on a host whose memory ends at any moment, for a moment: what they do then is done when
// there is some again, and nothing ends.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/hub_job.h"
#include "tests/simulation/mail_fixture.h"
#include "tests/simulation/work.h"
#include "tests/support/scarce_memory.h"

namespace gradcube::simulation {
namespace {

constexpr std::int64_t kMoment = 3 * kMillisecond;
constexpr unsigned kMostAllocations = 100'000;

class PollersWithoutMemoryAtTimes : public testing::Test {
 protected:
  void make_cluster(SimulationSettings settings) {
    settings.iterate_poller = [this](dataplane::Poller& poller) {
      const trainer::NoMemory none([this] { return is_short(); });
      return poller.iterate();
    };
    cluster_ = std::make_unique<SimulatedCluster>(settings);
  }
  // step(): what pollers do. For a moment they have no memory, from allocation `first_` on: at each
  // of the first ones, and at ever fewer of the later ones.
  template <typename Step>
  void at_each_moment(const Step& step) {
    const bool deep = std::getenv("GRADCUBE_TEST_DEEP") != nullptr;
    for (first_ = 1;; first_ += deep ? 1 : 1 + first_ / 16) {
      ASSERT_LT(first_, kMostAllocations);
      SCOPED_TRACE("without memory from allocation " + std::to_string(first_) + " on");
      asked_ = 0;
      step();
      if (HasFailure() || asked_ < first_) break;
    }
    first_ = 0;
  }
  unsigned asked() const { return asked_; }

  std::unique_ptr<SimulatedCluster> cluster_;

 private:
  bool is_short() {
    if (++asked_ == first_) until_ = cluster_->now() + kMoment;
    return first_ != 0 && asked_ >= first_ && cluster_->now() < until_;
  }

  unsigned first_ = 0;  // 0: they have what they ask for
  unsigned asked_ = 0;
  std::int64_t until_ = 0;
};

TEST_F(PollersWithoutMemoryAtTimes, BringTheFirstMessagesBetweenServers) {
  make_cluster(settings_of({{"topology", "bcube:2,2"}, {"mtu", "1500"}}));
  at_each_moment([this] {
    MailJob job(*cluster_, 1 << 20);
    std::vector<std::pair<MailJob::Message, MailJob::Receipt>> receipts;
    for (unsigned from = 0; from < 4; ++from) {
      for (unsigned to = 0; to < 4; ++to) {
        const MailJob::Message message{from, to, 7, 20'000};
        job.send(message, from);
        receipts.emplace_back(message, job.receive(message));
      }
    }
    job.finish_well();
    for (const auto& [message, receipt] : receipts) {
      job.expect_here(message, receipt, message.from);
    }
    leave_all(*cluster_, job.trainers());
  });
}

TEST_F(PollersWithoutMemoryAtTimes, TakeFlowsToOtherLinksAndBack) {
  SimulationSettings settings = settings_of(
      {{"topology", "bcube:3,2"}, {"rate", "1gbit"}, {"greeting", "10ms"}, {"probing", "10ms"}});
  settings.links_are_watched = true;
  settings.paths_are_probed = true;
  make_cluster(settings);
  Collective collective;
  collective.count = 30'007;
  const Trainers trainers = cluster_->join_all("links", heap_for(collective));
  const control::Plan plan = cluster_->plan();
  dataplane::EmbeddedFabric& fabric = cluster_->cluster().emulated();
  const auto rerouted = [this] {
    unsigned flows = 0;
    for (const dataplane::EngineAt& at : cluster_->cluster().engines()) {
      at.engine->jobs().at(0)->for_each_flow(
          [&](const dataplane::Flow& flow) { flows += flow.route == flow.planned ? 0 : 1; });
    }
    return flows;
  };
  const auto set_up = [&](bool up) {
    fabric.change_impairments({fabric.links().front()}, [up](dataplane::Impairments impairments) {
      impairments.up = up;
      return impairments;
    });
  };
  at_each_moment([&] {
    for (const bool up : {false, true}) {
      for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
      set_up(up);
      EXPECT_TRUE(cluster_->run_until([&] { return all_idle(trainers); }, kSecond));
      expect_right(plan, trainers, collective);
      EXPECT_TRUE(cluster_->run_until([&] { return (rerouted() == 0) == up; }, 2 * kSecond));
    }
  });
  leave_all(*cluster_, trainers);
}

TEST_F(PollersWithoutMemoryAtTimes, AskForNoneInTheFirstCollectivesAndRoundsOfAJob) {
  make_cluster(settings_of({{"topology", "bcube:2,2"}, {"mtu", "1500"}}));
  HubJob job(*cluster_, {{"a", 9'000}, {"b", 3}}, "sgd");
  job.make();
  push_first(job);
  push_gradients(job, 1);
  Collective collective;
  collective.count = 5'003;
  const Trainers trainers = cluster_->join_all("job", heap_for(collective));
  allreduce(*cluster_, cluster_->plan(), trainers, collective);
  EXPECT_EQ(asked(), 0U);
  leave_all(*cluster_, trainers);
  leave_all(*cluster_, job.trainers());
}

}  // namespace
}  // namespace gradcube::simulation
