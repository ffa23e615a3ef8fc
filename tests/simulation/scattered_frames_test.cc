// Servers on several lcores whose ports bring frames to any of them, as NICs may: collectives,
// messages and hubs, over links that harm frames. Random clusters have such ports, too.

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/simulation/hub_job.h"
#include "tests/simulation/mail_fixture.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::simulation {
namespace {

class ScatteredFrames : public testing::Test {
 protected:
  ScatteredFrames() : cluster_(settings(seed_)) {}
  ~ScatteredFrames() override {
    const dataplane::EngineCounters counters = cluster_.counters();
    EXPECT_GT(counters.handed_over, 0U);
    EXPECT_EQ(counters.dropped[static_cast<std::size_t>(dataplane::DropReason::foreign_thread)],
              0U);
  }

  static SimulationSettings settings(std::uint64_t seed) {
    SimulationSettings settings = settings_of({{"topology", "bcube:3,2"},
                                               {"rate", "1gbit"},
                                               {"loss", "0.01"},
                                               {"duplicate", "0.01"},
                                               {"reorder", "0.02"}});
    settings.seed = seed;
    settings.lcores = 2;
    settings.frames_are_scattered = true;
    settings.links_are_watched = true;
    return settings;
  }

  const std::uint64_t seed_ = protocol::test_seed(11);
  const testing::ScopedTrace trace_{__FILE__, __LINE__, protocol::seed_trace(seed_)};
  SimulatedCluster cluster_;
};

TEST_F(ScatteredFrames, AreAddedRight) {
  Collective collective;
  collective.count = 300'000;
  const Trainers trainers = cluster_.join_all("scattered", heap_for(collective));
  for (unsigned round = 0; round < 3; ++round) allreduce(cluster_, trainers, collective);
  leave_all(cluster_, trainers);
}

TEST_F(ScatteredFrames, BringMail) {
  MailJob job(cluster_, 8 << 20);
  std::vector<std::pair<MailJob::Message, MailJob::Receipt>> all;
  for (unsigned from = 0; from < 9; ++from) {
    const MailJob::Message message{from, (from + 4) % 9, 1, 200'000};
    job.send(message, from);
    all.emplace_back(message, job.receive(message));
  }
  job.finish();
  for (unsigned i = 0; i < 9; ++i) job.expect_here(all[i].first, all[i].second, i);
  leave_all(cluster_, job.trainers());
}

TEST_F(ScatteredFrames, BringTheChunksOfAHub) {
  HubJob job(cluster_, {{"all", 20'000, aggregation::DataType::float32}}, "adam:lr=0.01");
  job.make();
  job.push_all(shared::PushKind::weights, [](unsigned, std::uint32_t, std::uint64_t element) {
    return static_cast<float>(element);
  });
  job.push_all(shared::PushKind::gradients,
               [](unsigned, std::uint32_t, std::uint64_t) { return 1.0F; });
  const std::vector<std::uint8_t> weights = job.weights(*job.trainers()[0]);
  for (const auto& trainer : job.trainers()) EXPECT_EQ(job.weights(*trainer), weights);
  leave_all(cluster_, job.trainers());
}

}  // namespace
}  // namespace gradcube::simulation
