// What a small collective waits for where a large one of another job fills the links, and what the
// large one loses by it. In virtual time, so that nothing but the queues counts.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/algorithms.h"
#include "dataplane/fabric/frame_fields.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

// Two jobs on one cluster: the large one on all servers, the small one on the first few.
class SmallBesideLarge {
 public:
  SmallBesideLarge(const SimulationSettings& settings, std::uint64_t large_elements,
                   unsigned servers_of_small = 0)
      : cluster_(settings) {
    little_.count = 250;
    much_.count = large_elements;
    join_small(servers_of_small == 0 ? cluster_.servers() : servers_of_small);
    large_ = cluster_.join_all("large", heap_for(much_));
    cluster_.run_for(20 * kMillisecond);  // the flows tell each other of their credit
  }

  std::int64_t small_alone() {
    small_one();
    cluster_.run_for(kMillisecond);
    return small_one();
  }
  std::int64_t large_alone() { return allreduce(cluster_, large_, much_); }
  // Segments of both.
  std::uint64_t sent() const { return cluster_.counters().segments_sent; }

  struct Beside {
    std::int64_t longest_small = 0;
    std::uint64_t most_sent = 0;  // segments of both while a small one was under way
    std::int64_t large = 0;
    unsigned times = 0;
  };
  // Small ones, one after another with a pause between, as long as a large one lasts.
  Beside beside(std::int64_t pause) {
    for (const auto& trainer : large_) fill_and_submit(*trainer, much_);
    const std::int64_t begin = cluster_.now();
    Beside beside;
    while (!all_idle(large_)) {
      const std::uint64_t before = sent();
      const std::int64_t taken = small_one();
      if (all_idle(large_)) break;
      beside.longest_small = std::max(beside.longest_small, taken);
      beside.most_sent = std::max(beside.most_sent, sent() - before);
      ++beside.times;
      cluster_.run_until([this] { return all_idle(large_); }, pause);
    }
    beside.large = cluster_.now() - begin;
    expect_right(cluster_, large_, much_);
    return beside;
  }
  void leave() {
    EXPECT_EQ(cluster_.counters().resent, 0u);
    EXPECT_EQ(cluster_.switch_counts().dropped_queue, 0u);
    leave_all(cluster_, small_);
    leave_all(cluster_, large_);
  }

 private:
  void join_small(unsigned servers) {
    dataplane::TrainerRequest request{"small", 1000};
    request.heap_bytes = heap_for(little_);
    request.options.lanes = {{"bml", 0}};
    for (bcube::ServerId server = 0; server < servers; ++server) {
      request.options.members.push_back(server);
    }
    for (const bcube::ServerId server : std::vector(request.options.members)) {
      small_.push_back(cluster_.join(server, request));
    }
    const control::Topology grid =
        servers == cluster_.servers()
            ? cluster_.cluster().topology()
            : control::parse_topology("star:" + std::to_string(servers), "small");
    small_plan_.emplace(control::make_plan("bml", grid, "small"));
  }
  std::int64_t small_one() { return allreduce(cluster_, *small_plan_, small_, little_); }

  SimulatedCluster cluster_;
  std::optional<control::Plan> small_plan_;
  Collective little_;
  Collective much_;
  Trainers small_;
  Trainers large_;
};

SimulationSettings settings_on(const std::string& topology, const std::string& rate) {
  SimulationSettings settings = settings_of({{"topology", topology}});
  if (!rate.empty()) settings = settings_of({{"topology", topology}, {"rate", rate}});
  settings.lcores = 2;
  return settings;
}

// The time of a frame of 9,000 bytes on a wire of 1 Gbit/s.
constexpr std::int64_t kFrameTime =
    (9'000 + dataplane::kEthernetBytes + dataplane::kWireOverheadBytes) * 8;

// Each exchange passes the sender's wire and the switch's. The last one is that of the results'
// acknowledgements.
TEST(ASmallCollectiveBesideALargeOne, WaitsAtEachWireForOneFrame) {
  for (const auto& [topology, exchanges] : {std::pair("bcube:3,2", 5), std::pair("star:5", 3)}) {
    SCOPED_TRACE(topology);
    SmallBesideLarge jobs(settings_on(topology, "1gbit"), 1'500'000);
    const std::int64_t alone = jobs.small_alone();
    const std::int64_t large_alone = jobs.large_alone();
    const SmallBesideLarge::Beside beside = jobs.beside(kMillisecond / 2);
    EXPECT_GT(beside.times, 10u);
    EXPECT_LE(beside.longest_small, alone + 2 * exchanges * kFrameTime);
    EXPECT_LE(beside.large, large_alone * 105 / 100);
    jobs.leave();
  }
}

// Without a rate it is rings that it would wait in: here iterations of pollers count.
TEST(ASmallCollectiveBesideALargeOne, WaitsInNoRingWithoutARate) {
  SmallBesideLarge jobs(settings_on("bcube:3,2", ""), 5'000'000);
  const std::int64_t alone = jobs.small_alone();
  const SmallBesideLarge::Beside beside = jobs.beside(0);
  EXPECT_GT(beside.times, 5u);
  EXPECT_LE(beside.longest_small, alone + 2 * SimulationSettings().iteration);
  jobs.leave();
}

// And what a poller moves in each: an exchange takes no iteration where the poller looks for it in
// between, at all servers' engines. On two servers of the star the others have no part in it.
TEST(ASmallCollectiveBesideALargeOne, TakesNotAnIterationForEachExchangeWithoutARate) {
  for (const auto& [topology, servers] : {std::pair("bcube:3,2", 9U), std::pair("star:9", 2U)}) {
    SCOPED_TRACE(topology);
    SimulationSettings settings = settings_on(topology, "");
    settings.lcores = 1;
    SmallBesideLarge jobs(settings, 5'000'000, servers);
    EXPECT_GE(jobs.small_alone(), 4 * settings.iteration);
    const std::uint64_t before = jobs.sent();
    const std::int64_t large_alone = jobs.large_alone();
    const std::uint64_t sent_alone = jobs.sent() - before;
    const SmallBesideLarge::Beside beside = jobs.beside(0);
    EXPECT_GT(beside.times, 5u);
    EXPECT_LE(beside.longest_small, 2 * settings.iteration);
    EXPECT_LE(beside.most_sent, 3 * sent_alone * settings.iteration / large_alone);
    EXPECT_LE(beside.large, large_alone * 105 / 100);
    jobs.leave();
  }
}

}  // namespace
}  // namespace gradcube::simulation
