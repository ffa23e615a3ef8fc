// A whole cluster in one thread under a virtual clock: the daemon's engines, switches, pollers and
// job coordinator, iterated by the test. Nothing reads another clock and nothing sleeps. So the
// same settings, seed and actions give the same run to the last packet (trace()).
//
// Time. An iteration in which something moved takes kIteration. If nothing moved, time jumps to the
// earliest moment at which something happens by itself: an event of a poller (a timer, a delayed
// acknowledgement, a frame on a wire), the end of a stall, or what the test itself waits for
// (look_at(), the end of run_until()); by kLongestJump at most. The seed determines the schedule:
// the order of the pollers, and when a poller stalls for a while, as if the operating system had
// taken its core away.
//
// Needs an Eal. At most one cluster at a time, because the packet pools have names.
#ifndef GRADCUBE_TESTS_SIMULATION_SIMULATED_CLUSTER_H_
#define GRADCUBE_TESTS_SIMULATION_SIMULATED_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/embedded_cluster.h"
#include "dataplane/daemon/job_coordinator.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/fabric/emulated/random.h"
#include "dataplane/host/clock.h"
#include "tests/simulation/simulated_trainer.h"

namespace gradcube::simulation {

struct SimulationSettings {
  control::ClusterSettings cluster;
  unsigned lcores = 1;
  std::uint64_t seed = 1;
  double stalls = 0;  // per iteration and poller: the probability of a stall of up to kLongestStall
};

// What the coordinator told a trainer.
struct Told {
  shared::Notice notice;
  bool evicted = false;
};

class SimulatedCluster final : private dataplane::MemberChannel {
 public:
  static constexpr std::int64_t kIteration = 1'000;
  static constexpr std::int64_t kLongestJump = 10'000'000;
  static constexpr std::int64_t kLongestStall = 5'000'000;
  static constexpr std::int64_t kDrain = 500'000'000;  // the coordinator's, in virtual time

  explicit SimulatedCluster(const SimulationSettings& settings);
  ~SimulatedCluster() override;
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  dataplane::EmbeddedCluster& cluster() { return *cluster_; }
  // What a job without wishes runs.
  const control::Plan& plan() const { return plan_; }
  dataplane::JobCoordinator& coordinator() { return *coordinator_; }
  unsigned servers() const { return plan().servers(); }

  std::unique_ptr<SimulatedTrainer> join(const dataplane::JoinRequest& request);
  std::unique_ptr<SimulatedTrainer> join(const std::string& job, bcube::ServerId server,
                                         std::uint64_t heap_bytes);
  // Joins one trainer per server; in the order of the servers.
  std::vector<std::unique_ptr<SimulatedTrainer>> join_all(const std::string& job,
                                                          std::uint64_t heap_bytes);
  void leave(const SimulatedTrainer& trainer, dataplane::Departure departure);
  const std::vector<Told>& told(const SimulatedTrainer& trainer) { return told_[trainer.member()]; }

  // Gets the engines' events instead of the coordinator, from now on.
  void set_event_handler(std::function<void(const dataplane::EngineEvent&)> handler) {
    handler_ = std::move(handler);
  }

  // What the coordinator wrote into the daemon's log.
  const std::vector<std::string>& log() const { return log_; }

  std::int64_t now() { return clock_.now(); }
  // One iteration of every poller and of the control thread, and the time that it takes.
  void iterate();
  // The next iteration takes no longer than until `when`: the test has something to do then, which
  // nothing else announces. The earliest of several calls counts.
  void look_at(std::int64_t when) { look_at_ = std::min(look_at_, when); }
  // Iterates until `done` or for `limit` nanoseconds. True if it was done.
  template <typename Done>
  bool run_until(Done&& done, std::int64_t limit) {
    const std::int64_t end = clock_.now() + limit;
    while (!done()) {
      if (clock_.now() >= end) return false;
      look_at(end);
      iterate();
    }
    return true;
  }
  void run_for(std::int64_t nanoseconds) {
    run_until([] { return false; }, nanoseconds);
  }

  // Sums over all engines and all switch ports.
  dataplane::EngineCounters counters() const;
  dataplane::SwitchPortCounts switch_counts() const;

  // Packets that are out of their pools: in flight, or held by windows.
  unsigned packets_in_use() const;
  // A hash of everything that was moved and counted, and when.
  std::uint64_t trace() const;

 private:
  void notify(dataplane::MemberId member, const shared::Notice& notice) override;
  void evict(dataplane::MemberId member, std::int32_t code, const std::string& message) override;
  void record(const std::string& line) override { log_.push_back(line); }
  unsigned iterate_pollers();
  std::int64_t next_event();
  // Whether there was an event to handle.
  bool control();
  void mix(std::uint64_t value) { trace_ = (trace_ ^ value) * 0x100000001b3; }

  SimulationSettings settings_;
  control::Plan plan_;
  dataplane::VirtualClock clock_{1'000'000};
  dataplane::EventQueue events_;
  std::unique_ptr<dataplane::EmbeddedCluster> cluster_;
  std::unique_ptr<dataplane::JobCoordinator> coordinator_;
  std::map<dataplane::MemberId, std::vector<Told>> told_;
  std::vector<std::string> log_;
  std::function<void(const dataplane::EngineEvent&)> handler_;
  dataplane::SeededRandom random_;
  std::vector<std::int64_t> stalled_until_;  // by poller
  std::vector<std::size_t> order_;
  std::int64_t look_at_ = dataplane::kNever;
  std::int64_t drains_until_ = dataplane::kNever;
  std::uint64_t trace_ = 0xcbf29ce484222325;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_SIMULATED_CLUSTER_H_
