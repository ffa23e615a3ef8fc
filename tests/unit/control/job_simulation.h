// A cluster of JobNodes under a virtual clock: trainers that follow a random script, engines that
// exchange contributions, and a network that loses, doubles and delays all of it. Everything
// follows from the seed.
//
// What must hold, and is judged in every run:
//
//   1. No collective completes on one trainer and fails on another with the job going on. When a
//      job ends, survivors that count each other and can talk learn the same numbers, and what is
//      up to them has ended alike. In a calm run (no trainer or daemon fails) every collective
//      ends.
//   2. No engine meets a frame of an epoch that it does not take yet.
//   3. Every trainer that lives has left, or has an outcome for all that it submitted.
//   4. In the end no node keeps an agent, a leader or an engine.
//   5. Where an average overflows, and only there, servers that do not need the element may have
//      the result that others have not. All read the same text, that says who submitted what.
//   6. Every inquiry of a trainer is answered in time.
//   7. Trainers that all leave and join again at once get a new job that does their work.
//   8. In a calm run with one failure, all that comes before it in its lane completes.
//   9. Two servers between which a link has broken for good, one way or both, both find it out.
//  10. Every message comes out of its byte form as it went in.
//  11. Where trainers leave in order, and nothing else goes wrong, all that those had submitted
//      completes on the others, and nothing beyond. (Of several lanes, the reset for one fails what
//      not all have submitted yet in the others.)
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_JOB_SIMULATION_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_JOB_SIMULATION_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/jobs/departures.h"
#include "control/jobs/greetings.h"
#include "control/jobs/introductions.h"
#include "control/jobs/machines/job_node.h"

namespace gradcube::control {

struct SimulationOptions {
  bool message_faults = true;  // loss, doubles, reordering
  bool disagreements = true;
  bool trainer_faults = false;  // leaves in the middle, deaths, aborts
  bool node_faults = false;     // kills, restarts, stops, partitions
  bool rejoins = false;         // all trainers leave in the middle and join again
  bool departures = false;      // some leave in the middle, in order
};

class JobSimulation {
 public:
  JobSimulation(std::uint64_t seed, SimulationOptions options);

  // To the end. What was violated, one sentence each; nothing if all holds.
  std::vector<std::string> run();

  unsigned resets() const { return resets_; }
  unsigned ends() const { return ends_; }
  Instant duration() const { return now_; }
  unsigned common_unknown() const { return common_unknown_; }
  unsigned reports() const { return reports_; }

 private:
  using Lanes = std::vector<std::vector<int>>;  // by lane: what each collective is, or its outcome
  static constexpr int kOpen = 0;
  static constexpr int kDone = 1;
  static constexpr int kMismatch = 3;
  static constexpr int kOverflow = 4;
  static constexpr int kDeparted = 5;
  static constexpr int kPeer = -1;

  // A trainer with its session. Collectives count from 1: [c - 1].
  struct Trainer {
    bool alive = true;   // it cares for its outcomes
    bool ended = false;  // was refused, or its job is over
    bool leaves = false;
    bool leaving = false;                  // in order; its daemon has not told what it submitted
    bool left_early = false;               // before its job ran
    std::optional<LaneNumbers> left_with;  // what it had submitted, by lane
    JobId job = protocol::kNoJob;
    Lanes submitted;  // what it has asked for
    Lanes outcomes;
    Instant give_up{};
    bool was_set_up = false;
    std::vector<JobCut> cuts;  // of all resets: their collectives fail, submitted or not
    std::optional<LaneNumbers> common;
    std::set<bcube::ServerId> gone;
    std::uint64_t inquiry = 0;               // the newest
    std::optional<Instant> inquiring_since;  // while it is not answered
  };
  enum class State { armed, sending, holding, halted };
  struct Engine {
    JobDescriptor job;
    Epoch epoch = 0;
    State state = State::armed;
    LaneNumbers published, completed, failed;
    // Of this epoch: what a member has contributed, by server and lane, per collective.
    std::map<bcube::ServerId, std::vector<std::map<std::uint64_t, int>>> heard;
    std::set<std::pair<std::uint32_t, std::uint64_t>> reported;
    std::optional<CollectiveName> asked;  // by the newest command::Hold
    Departures departures;
    Instant busy_until{};
  };
  struct Node {
    std::unique_ptr<JobNode> control;  // null: dead
    unsigned boots = 0;
    Incarnation incarnation = 0;  // of the last boot
    bool stopped = false;
    std::unique_ptr<Introductions> introductions;
    std::unique_ptr<Greetings> greetings;
    std::set<bcube::ServerId> silent;  // as this daemon has found out
    std::map<Attempt, Engine> engines;
    std::map<Attempt, Trainer> trainers;
    std::deque<std::function<void(Node&)>> missed;  // while it was stopped
  };
  struct Due {
    Instant at;
    std::uint64_t order;
    std::function<void()> run;
    bool operator<(const Due& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  // A link that has broken for good.
  struct Broken {
    bcube::ServerId from, to;
    std::map<bcube::ServerId, Incarnation> incarnations;  // of both, then
  };
  struct Contribution {
    Epoch epoch;
    JobId job;
    std::vector<std::map<std::uint64_t, int>> collectives;
  };

  // Script (job_simulation.cc)
  void plan_faults();
  void plan_node_faults();
  void plan_rejoins();
  void leave(bcube::ServerId server, unsigned how);
  void leave_in_order(bcube::ServerId server, Attempt attempt, Trainer& trainer);
  void stop_for_a_while(bcube::ServerId server, Instant begin, Instant end);
  void break_links(std::uint64_t side, bool both_ways);
  void boot(bcube::ServerId server);
  void kill(bcube::ServerId server);
  void join(bcube::ServerId server);
  void live(Node& node, Attempt attempt, Trainer& trainer);
  void inquire(bcube::ServerId server, Attempt attempt, Trainer& trainer);
  void greet(bcube::ServerId server);
  void tick(bcube::ServerId server);

  // Network (job_simulated_network.cc)
  void at(Instant when, std::function<void()> run);
  void on_node(bcube::ServerId server, Incarnation incarnation, std::function<void(Node&)> run);
  NodeMessage through_bytes(const NodeMessage& message);
  bool crosses(bcube::ServerId from, bcube::ServerId to);
  Instant delay();
  void send(bcube::ServerId from, bcube::ServerId to, std::function<void(Node&)> deliver);
  // Where the message arrives and its sender is believed, `deliver` is called.
  void tell(const NodeMessage& message, std::function<void(Node&)> deliver);
  bool admits(Node& node, const NodeMessage& message);
  bool chance(double probability);
  unsigned any(unsigned below);

  // Engines (job_simulated_engines.cc)
  void perform(bcube::ServerId server, JobActions actions);
  void notify(Node& node, const ToTrainer& told);
  void take_report(Trainer& trainer, const notice::Report& report);
  void read_failure(Trainer& trainer, const JobCut& cut);
  static event::EnginesHeld held(const Trainer& trainer, const Engine& engine);
  void order(bcube::ServerId server, const ToEngines& order);
  void carry_out(Node& node, bcube::ServerId server, const ToEngines& order);
  void take(Node& node, Attempt attempt, Engine& engine);
  void contribute(bcube::ServerId server, Engine& engine);
  void receive(Node& node, bcube::ServerId server, bcube::ServerId from, const Contribution& what);
  void advance(Node& node, bcube::ServerId server, Attempt attempt, Engine& engine);
  void miss_the_gone(Node& node, bcube::ServerId server, Attempt attempt, Engine& engine);
  void event(bcube::ServerId server, Attempt attempt, JobEvent event);
  void note_gone(Node& node);
  static void note_given_up(Node& node, const JobMessage& message);

  // Judgement
  void end_outcomes(Trainer& trainer) const;
  static int code_of(const Trainer& trainer, std::size_t lane, std::uint64_t index);
  bool quiet() const;
  void judge();
  void judge_broken_links();
  void judge_rejoin(bcube::ServerId server);
  void judge_pair(std::pair<bcube::ServerId, const Trainer*> one,
                  std::pair<bcube::ServerId, const Trainer*> other);
  bool may_differ(std::size_t lane, std::uint64_t collective) const;
  void judge_order(const Trainer& trainer);
  void judge_departures(const std::vector<std::pair<bcube::ServerId, const Trainer*>>& trainers);
  void judge_job(const std::vector<std::pair<bcube::ServerId, const Trainer*>>& trainers);
  void complain(const std::string& what);

  std::mt19937_64 random_;
  SimulationOptions options_;
  bcube::AddressSpace space_;
  JobTiming timing_;
  JobOptions job_options_;
  unsigned collectives_;
  double loss_ = 0;
  double doubled_ = 0;
  std::set<std::pair<bcube::ServerId, bcube::ServerId>> cut_;                     // from, to
  std::map<std::pair<std::uint32_t, std::uint64_t>, bcube::ServerId> odd_;        // who disagrees
  std::map<std::pair<std::uint32_t, std::uint64_t>, bcube::ServerId> overflows_;  // who meets it
  std::vector<Broken> broken_;
  std::set<bcube::ServerId> stopped_;                           // once
  std::map<std::pair<JobId, LaneNumbers>, std::string> texts_;  // of failures, by the cut's end
  std::vector<Node> nodes_;
  std::priority_queue<Due> due_;
  std::uint64_t order_ = 0;
  Instant now_{};
  Instant last_fault_{};
  std::vector<std::string> complaints_;
  unsigned resets_ = 0;
  unsigned ends_ = 0;
  unsigned common_unknown_ = 0;
  unsigned reports_ = 0;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_JOB_SIMULATION_H_
