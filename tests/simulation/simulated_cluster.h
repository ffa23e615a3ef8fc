// A whole cluster in one thread under a virtual clock: the daemon's nodes, engines, switches and
// pollers, iterated by the test. Nothing reads another clock and nothing sleeps. So the same
// settings, seed and actions give the same run to the last packet (trace()).
//
// Time. An iteration in which something moved takes as long as the settings say. If nothing moved,
// time jumps to the next event of a poller or a node, or to the time at which the test wants to
// look (look_at()), by kLongestJump at most; not where somebody has rung for a poller.
//
// The seed determines the schedule: the order of the pollers, when the control thread runs, which
// pollers go on while it waits for another one, and when a poller stalls for a while. Pollers sleep
// until somebody rings (simulated_pollers.h), and have to show before some of the jumps of time
// that they sleep rightly; where frames are scattered, or somebody is on the wires, nobody sleeps.
//
// Faults of servers. A node can be killed, with all that its server held, and started anew; stopped
// and continued; cut off, so that neither frames nor messages of it come through, one way or both.
// The messages between nodes can be lost, doubled and reordered.
//
// Needs an Eal. At most one cluster at a time, because the packet pools have names.
#ifndef GRADCUBE_TESTS_SIMULATION_SIMULATED_CLUSTER_H_
#define GRADCUBE_TESTS_SIMULATION_SIMULATED_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/base/descriptor.h"
#include "control/plan/plan_choice.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/local_cluster.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/fabric/emulated/random.h"
#include "dataplane/host/clock.h"
#include "tests/simulation/scattering_port.h"
#include "tests/simulation/simulated_pollers.h"
#include "tests/simulation/simulated_trainer.h"
#include "tests/simulation/wiretap.h"
#include "tests/support/message_queue.h"

namespace gradcube::simulation {

struct SimulationSettings {
  control::ClusterSettings cluster;
  unsigned lcores = 1;
  std::int64_t iteration = 1'000;  // virtual nanoseconds that one takes in which something moves
  std::uint64_t seed = 1;
  double stalls = 0;  // SimulatedPollers::Schedule
  dataplane::MessageFaults messages{};
  dataplane::NodeTiming timing{};
  // Whether engines greet their neighbours, as those of a daemon do unless the cluster's settings
  // say otherwise. Without greetings nothing moves where nothing is to be done.
  bool links_are_watched = false;
  // Whether they compare the paths of flows, likewise.
  bool paths_are_probed = false;
  // Whether the messages between nodes travel in frames over the fabric, as those of different
  // processes do.
  bool messages_pass_the_fabric = false;
  // Whether ports bring frames to any engine of their server, as NICs may.
  bool frames_are_scattered = false;
  // Whether pollers go on while the control thread waits for one of them, as their threads do.
  bool pollers_go_on = false;
  // The control thread has its core in one of so many iterations, as chance will have it, and where
  // nothing moves.
  unsigned control_runs_one_in = 1;
  // Whether frames carry a MAC, as those between processes do.
  bool frames_are_authenticated = false;
  // How a poller iterates: what a test puts around that.
  std::function<unsigned(dataplane::Poller&)> iterate_poller = &dataplane::Poller::iterate;
  // What somebody without the key does on the wires.
  Attack attack{};
};

// What a node told its trainer.
struct Told {
  shared::Notice notice;
  bool evicted = false;
};

class SimulatedCluster final : private dataplane::TrainerChannel {
 public:
  static constexpr std::int64_t kLongestJump = 10'000'000;
  static constexpr std::uint64_t kJumpsBetweenChecks = 8;  // of sleepers, on average

  explicit SimulatedCluster(const SimulationSettings& settings);
  ~SimulatedCluster() override;
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  dataplane::LocalCluster& cluster() { return *cluster_; }
  // What a job without wishes runs; and of its plans the one that runs all collectives.
  const control::PlanChoice& choice() const { return choice_; }
  const control::Plan& plan() const { return choice_.plan(0); }
  dataplane::NodeGroup& nodes() { return cluster_->nodes(); }
  unsigned servers() const { return plan().servers(); }

  // The trainer wants to join; the nodes have worked on it as far as they can at this moment, which
  // is to the end unless messages take time. Throws dataplane::JoinRefused if it is refused at
  // once.
  std::unique_ptr<SimulatedTrainer> join(bcube::ServerId server,
                                         const dataplane::TrainerRequest& request);
  std::unique_ptr<SimulatedTrainer> join(const std::string& job, bcube::ServerId server,
                                         std::uint64_t heap_bytes);
  // Joins one trainer per server, in the order of the servers, of a job that asks for this
  // algorithm; the cluster's default if it is empty.
  std::vector<std::unique_ptr<SimulatedTrainer>> join_all(const std::string& job,
                                                          std::uint64_t heap_bytes,
                                                          const std::string& algorithm = "");
  void leave(const SimulatedTrainer& trainer, dataplane::Departure departure);
  const std::vector<Told>& told(const SimulatedTrainer& trainer) { return told_[trainer.id()]; }
  // The memory of the hub that the trainer was given last; -1 if there is none.
  int hub_of(const SimulatedTrainer& trainer) const {
    const auto found = hubs_.find(trainer.id());
    return found == hubs_.end() ? -1 : found->second.get();
  }
  // Why the collective is not done, as its node answers it.
  std::string explain(const SimulatedTrainer& trainer, control::CollectiveName collective);
  // No node has anything of a job.
  bool idle() { return nodes().idle() && messages_.empty(); }
  std::vector<dataplane::JobFacts> jobs() { return nodes().jobs(instant()); }

  // Its trainers are gone with it: nobody tells them anything any more.
  void kill(bcube::ServerId server);
  void start_anew(bcube::ServerId server);
  // What comes to it until it goes on is lost: it points into the memory of other servers'
  // trainers, and these may be told meanwhile that their job has ended. On a host of its own the
  // server would hold copies.
  void stop(bcube::ServerId server);
  void go_on(bcube::ServerId server);
  // Nothing that the server sends arrives; both ways: nor does anything that is sent to it.
  void cut_off(bcube::ServerId server, bool both_ways);
  // Ends all cuts.
  void mend();
  // The poller does nothing for this time, as if the operating system had taken its core away.
  void pause_poller(std::size_t poller, std::int64_t nanoseconds) {
    pollers_->pause(poller, nanoseconds);
  }

  // A frame that comes to the first port of a server, as if its switch had brought it. It is the
  // server's then.
  void inject(rte_mbuf* frame, bcube::ServerId to = 0);

  // What the nodes wrote into the daemon's log.
  const std::vector<std::string>& log() const { return log_; }

  std::int64_t now() { return clock_.now(); }
  control::Instant instant() { return control::Instant(clock_.now() / 1000); }
  // The test wants to look at the cluster at this time, if nothing moves before.
  void look_at(std::int64_t time) { look_at_ = std::min(look_at_, time); }
  // One iteration of every poller and of the control thread, and the time that it takes.
  void iterate();
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

  // Packets that are out of their pools: in flight, or held by windows. The second: of segments
  // alone, without the copies that switches make.
  unsigned packets_in_use() const;
  unsigned segment_packets_in_use() const { return packets_in_use_of("segments"); }
  // Null: nobody is on the wires.
  const Wiretap* wiretap() const { return wiretap_.has_value() ? &*wiretap_ : nullptr; }
  // A hash of everything that was moved and counted, and when.
  std::uint64_t trace() const;

 private:
  void admit(dataplane::TrainerId trainer, const dataplane::JoinedSession& session) override;
  void refuse(dataplane::TrainerId trainer, std::int32_t code, const std::string& message) override;
  void notify(dataplane::TrainerId trainer, const shared::Notice& notice) override;
  void give_hub(dataplane::TrainerId trainer, const shared::Notice& notice,
                int descriptor) override;
  void evict(dataplane::TrainerId trainer, std::int32_t code, const std::string& message) override;
  void record(const std::string& line) override { log_.push_back(line); }
  unsigned packets_in_use_of(const char* pools) const;
  void drain_ports(bcube::ServerId server);
  std::int64_t next_event();
  // After an iteration in which so much moved.
  bool control_runs(unsigned moved);
  // Whether the nodes had something to do.
  bool control();
  dataplane::Port* replaced(dataplane::Port* port);
  void mix(std::uint64_t value) { trace_ = (trace_ ^ value) * 0x100000001b3; }

  SimulationSettings settings_;
  control::PlanChoice choice_;
  dataplane::VirtualClock clock_{1'000'000};
  dataplane::EventQueue events_;
  std::deque<ScatteringPort> scattering_;  // of all nodes ever
  std::optional<Wiretap> wiretap_;
  std::deque<TappedPort> tapped_;     // the same
  dataplane::MessageQueue messages_;  // between nodes
  std::unique_ptr<dataplane::LocalCluster> cluster_;
  control::Incarnation incarnation_ = 1;  // the newest of any node
  std::map<dataplane::TrainerId, std::vector<Told>> told_;
  std::map<dataplane::TrainerId, control::Descriptor> hubs_;
  std::map<dataplane::TrainerId, SimulatedTrainer*> joining_;
  std::vector<std::string> log_;
  dataplane::SeededRandom random_;
  std::optional<SimulatedPollers> pollers_;
  std::set<bcube::ServerId> deaf_;  // dead or stopped: what comes to their ports is lost
  std::int64_t look_at_ = dataplane::kNever;
  // What the links of servers that are cut off were like before.
  std::vector<std::pair<dataplane::EmbeddedFabric::LinkAt, dataplane::Impairments>> cut_links_;
  std::uint64_t trace_ = 0xcbf29ce484222325;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_SIMULATED_CLUSTER_H_
