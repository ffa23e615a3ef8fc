// Nodes without engines, under a clock that the test moves: who is admitted, who is told what when
// trainers and daemons go, and what remains.

#include "dataplane/daemon/node.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <unistd.h>

#include "control/plan/topology.h"
#include "dataplane/daemon/node_group.h"
#include "dataplane/engine/event_queue.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

using control::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 20240607;

// What a trainer has been told.
struct Told {
  std::optional<JoinedSession> admitted;
  std::int32_t refusal = 0;  // its code
  std::string why_refused;
  std::vector<shared::Notice> notices;
  bool evicted = false;

  // The text of the newest notice of this type; empty if there is none.
  std::string last(shared::MessageType type) const {
    for (auto notice = notices.rbegin(); notice != notices.rend(); ++notice) {
      if (notice->type == type) return notice->text;
    }
    return "";
  }
  std::string failure() const { return last(shared::MessageType::failure); }
  std::string report() const { return last(shared::MessageType::report); }
};

class Recorder final : public TrainerChannel {
 public:
  void admit(TrainerId trainer, const JoinedSession& session) override {
    EXPECT_FALSE(told[trainer].admitted.has_value()) << "a trainer is admitted once";
    told[trainer].admitted = session;
    close(session.trainer_doorbell);
  }
  void refuse(TrainerId trainer, std::int32_t code, const std::string& message) override {
    EXPECT_FALSE(told[trainer].admitted.has_value()) << message;
    told[trainer].refusal = code;
    told[trainer].why_refused = message;
  }
  void notify(TrainerId trainer, const shared::Notice& notice) override {
    EXPECT_TRUE(told[trainer].admitted.has_value()) << notice.text;
    told[trainer].notices.push_back(notice);
  }
  void evict(TrainerId trainer, std::int32_t, const std::string&) override {
    told[trainer].evicted = true;
  }
  void record(const std::string& line) override { log.push_back(line); }

  std::map<TrainerId, Told> told;
  std::vector<std::string> log;
};

class Nodes : public testing::Test {
 protected:
  explicit Nodes(const std::vector<bcube::ServerId>& servers = {0, 1, 2}) {
    nodes_.set_channel(&recorder_);
    for (const bcube::ServerId server : servers) start(server, 1);
  }

  void start(bcube::ServerId server, control::Incarnation incarnation) {
    nodes_.add(server, incarnation,
               std::make_unique<NodeEngines>(topology_.space(), std::vector<Port*>(),
                                             std::vector<EnginePlace>(), events_));
  }
  // Its daemon is killed and started anew. A new daemon counts its trainers from 1 again.
  void restart(bcube::ServerId server, control::Incarnation incarnation) {
    nodes_.remove(server);
    std::erase_if(recorder_.told, [&](const auto& each) { return each.first.server == server; });
    start(server, incarnation);
  }

  static TrainerRequest request(bcube::ServerId server) {
    TrainerRequest request;
    request.job = "mnist";
    request.pid = 100 + server;
    request.heap_bytes = 4096;
    return request;
  }
  TrainerId join(bcube::ServerId server) { return join(server, request(server)); }
  TrainerId join(bcube::ServerId server, const TrainerRequest& request) {
    return nodes_.at(server).join(request, now_);
  }
  // On every server; the job runs.
  std::vector<TrainerId> join_all() {
    std::vector<TrainerId> trainers;
    for (const bcube::ServerId server : nodes_.servers()) trainers.push_back(join(server));
    run_for(milliseconds(100));
    for (const TrainerId trainer : trainers) EXPECT_TRUE(told(trainer).admitted.has_value());
    return trainers;
  }
  void leave(TrainerId trainer, Departure departure = Departure::orderly) {
    nodes_.at(trainer.server).leave(trainer, departure, "broke a rule", now_);
  }
  // The answer to a question about the first collective.
  std::string ask(TrainerId trainer) {
    nodes_.at(trainer.server).inquire(trainer, ++asked_, {0, 1}, now_);
    run_for(control::JobTiming{}.answer + milliseconds(20));
    return told(trainer).report();
  }

  // Runs what is due at its time, and looks every 20 ms.
  void run_for(Instant duration) {
    const Instant end = now_ + duration;
    unsigned idle_turns = 0;
    while (now_ < end) {
      nodes_.run(now_);
      nodes_.look(now_);
      const Instant before = now_;
      now_ = std::min({end, now_ + milliseconds(20), nodes_.deadline().value_or(end)});
      now_ = std::max(now_, before);
      idle_turns = now_ == before ? idle_turns + 1 : 0;
      ASSERT_LT(idle_turns, 10u) << "a deadline does not move";
    }
    nodes_.run(now_);
  }
  const Told& told(TrainerId trainer) { return recorder_.told[trainer]; }
  // All trainers have left, and nothing of any job is kept: an idle process has nothing to do.
  void expect_nothing_left() {
    run_for(seconds(30));
    EXPECT_TRUE(nodes_.idle());
    EXPECT_FALSE(nodes_.deadline().has_value());
    EXPECT_FALSE(nodes_.run(now_));
    EXPECT_TRUE(nodes_.jobs(now_).empty());
    EXPECT_EQ(nodes_.trainer_bytes(), 0u);
  }

  control::Topology topology_ = control::parse_topology("star:3", "here");
  EventQueue events_;
  Recorder recorder_;
  NodeGroup nodes_{topology_, aggregation::select_kernels(0), {}, kSeed};
  Instant now_ = seconds(1'000);
  std::uint64_t asked_ = 0;
};

// Only some servers' nodes live in this process.
class NodesWithoutTheLowest : public Nodes {
 protected:
  NodesWithoutTheLowest() : Nodes({1, 2}) {}
};

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
  }
}

// Joining ------------------------------------------------------------------

TEST_F(Nodes, HaveNothingToDoWithoutTrainers) {
  EXPECT_FALSE(nodes_.deadline().has_value());
  EXPECT_FALSE(nodes_.run(now_));
  EXPECT_FALSE(nodes_.messages().next().has_value()) << "an idle node greets nobody";
  run_for(seconds(5));
  EXPECT_FALSE(nodes_.run(now_));
  EXPECT_TRUE(nodes_.idle());
}

TEST_F(Nodes, AdmitATrainerWhenItsLeaderHasAnsweredAndNotBefore) {
  nodes_.messages().cut(0, 2);
  const TrainerId trainer = join(2);
  EXPECT_FALSE(told(trainer).admitted.has_value()) << "nothing happens within the call";
  run_for(seconds(1));
  EXPECT_FALSE(told(trainer).admitted.has_value());
  nodes_.messages().mend();
  run_for(seconds(1));
  ASSERT_TRUE(told(trainer).admitted.has_value());
  EXPECT_EQ(told(trainer).admitted->rank, 2u);
  EXPECT_EQ(told(trainer).admitted->size, 3u);
  EXPECT_GE(told(trainer).admitted->region_descriptor, 0);
}

TEST_F(Nodes, AdmitTrainersByTheRanksThatTheyAskFor) {
  std::vector<TrainerId> trainers;
  for (const bcube::ServerId server : nodes_.servers()) {
    TrainerRequest asks = request(server);
    asks.rank = (server + 1) % 3;
    trainers.push_back(join(server, asks));
  }
  run_for(milliseconds(100));
  for (const TrainerId trainer : trainers) {
    ASSERT_TRUE(told(trainer).admitted.has_value());
    EXPECT_EQ(told(trainer).admitted->rank, (trainer.server + 1) % 3);
  }
  ASSERT_EQ(nodes_.jobs(now_).size(), 1u);
  EXPECT_EQ(nodes_.jobs(now_)[0].state, JobState::running);
}

TEST_F(Nodes, RefuseATrainerThatAsksForOtherOptionsWithTheLeadersSentence) {
  join(0);
  TrainerRequest asks = request(1);
  asks.options.weight = 2;
  const TrainerId trainer = join(1, asks);
  run_for(milliseconds(100));
  EXPECT_EQ(told(trainer).refusal, GRADCUBE_EJOB);
  expect_words(told(trainer).why_refused, {"job \"mnist\"", "weight 1", "weight 2", "expected"});
  EXPECT_EQ(nodes_.at(1).trainers(), 0u);
  EXPECT_TRUE(nodes_.at(1).idle());
}

TEST_F(Nodes, RefuseATrainerWhoseRankIsTaken) {
  TrainerRequest asks = request(0);
  asks.rank = 1;
  join(0, asks);
  asks.pid = 102;
  const TrainerId trainer = join(2, asks);
  run_for(milliseconds(100));
  EXPECT_EQ(told(trainer).refusal, GRADCUBE_EJOB);
  expect_words(told(trainer).why_refused, {"rank 1", "[0]", "pid 100"});
}

TEST_F(Nodes, RefuseASecondTrainerOfAJobOnAServerAtOnce) {
  const TrainerId first = join(1);
  try {
    join(1);
    ADD_FAILURE() << "joined";
  } catch (const JoinRefused& refused) {
    EXPECT_EQ(refused.code(), GRADCUBE_EJOB);
    expect_words(refused.what(), {"already has a trainer", "[1]", "pid 101"});
  }
  run_for(milliseconds(100));
  EXPECT_TRUE(told(first).admitted.has_value());
  EXPECT_EQ(nodes_.at(1).trainers(), 1u);
}

TEST_F(Nodes, RefuseAHeapThatCannotBe) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 50, UINT64_MAX}) {
    TrainerRequest asks = request(1);
    asks.heap_bytes = bytes;
    try {
      join(1, asks);
      ADD_FAILURE() << "joined with " << bytes;
    } catch (const JoinRefused& refused) {
      EXPECT_EQ(refused.code(), GRADCUBE_EINVAL);
      expect_words(refused.what(), {std::to_string(bytes), "GRADCUBE_HEAP"});
    }
  }
  EXPECT_TRUE(nodes_.at(1).idle());
}

TEST_F(NodesWithoutTheLowest, RefuseATrainerWhoseLeaderDoesNotAnswerAndNameItsServer) {
  const TrainerId trainer = join(1);
  run_for(control::JobTiming{}.phase - milliseconds(50));
  EXPECT_EQ(told(trainer).refusal, 0);
  run_for(milliseconds(100));
  EXPECT_EQ(told(trainer).refusal, GRADCUBE_EPEER);
  expect_words(told(trainer).why_refused, {"daemon on server [0]", "does not answer"});
  EXPECT_EQ(nodes_.at(1).trainers(), 0u);
  expect_nothing_left();
}

TEST_F(NodesWithoutTheLowest, RunAJobAmongTheMembersThatTheyHave) {
  for (const bcube::ServerId server : {1U, 2U}) {
    TrainerRequest asks = request(server);
    asks.options.members = {1, 2};
    join(server, asks);
  }
  run_for(milliseconds(100));
  const auto jobs = nodes_.jobs(now_);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].state, JobState::running);
  EXPECT_EQ(jobs[0].trainers.size(), 2u);
}

TEST_F(NodesWithoutTheLowest, KeepNothingOfATrainerThatGoesWhileItWaitsForItsLeader) {
  for (const Departure departure : {Departure::orderly, Departure::death, Departure::violation}) {
    const TrainerId trainer = join(2);
    run_for(milliseconds(300));
    leave(trainer, departure);
    EXPECT_EQ(nodes_.at(2).trainers(), 0u);
    join(2);  // the name is free at once
    leave({2, trainer.attempt + 1});
    expect_nothing_left();
    EXPECT_EQ(told(trainer).refusal, 0) << "nobody is there to be told";
  }
}

TEST_F(Nodes, KeepNothingOfAJobWhoseTrainersGoBeforeItIsComplete) {
  const TrainerId first = join(0);
  const TrainerId second = join(2);
  run_for(milliseconds(100));
  leave(first);
  run_for(milliseconds(100));
  expect_words(told(second).failure(), {"server [0] (pid 100) left"});
  leave(second);
  expect_nothing_left();
}

// Ending -------------------------------------------------------------------

TEST_F(Nodes, TellTheOthersWhoDiedAndWhatEndedOnAllOfThem) {
  const auto trainers = join_all();
  leave(trainers[1], Departure::death);
  run_for(seconds(1));
  for (const TrainerId survivor : {trainers[0], trainers[2]}) {
    ASSERT_EQ(told(survivor).notices.size(), 1u);
    const shared::Notice& notice = told(survivor).notices[0];
    EXPECT_EQ(notice.code, GRADCUBE_EPEER);
    EXPECT_EQ(notice.number, 1u);
    EXPECT_STREQ(notice.text,
                 "the trainer of job \"mnist\" on server [1] (pid 101) died; no collective ended "
                 "on all of the others");
  }
  EXPECT_TRUE(told(trainers[1]).notices.empty()) << "it has gone";
  EXPECT_EQ(recorder_.log.front(), "the trainer of job \"mnist\" on server [1] (pid 101) died");
  const auto jobs = nodes_.jobs(now_);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].state, JobState::aborted);
  EXPECT_EQ(jobs[0].trainers.size(), 2u);
  leave(trainers[0]);
  leave(trainers[2]);
  expect_nothing_left();
}

TEST_F(Nodes, TellTheOthersWhoBrokeARule) {
  const auto trainers = join_all();
  leave(trainers[2], Departure::violation);
  run_for(seconds(1));
  for (const TrainerId survivor : {trainers[0], trainers[1]}) {
    expect_words(told(survivor).failure(), {"server [2] (pid 102) broke a rule"});
  }
}

TEST_F(Nodes, EndTheJobOfADeadLeadersTrainer) {
  const auto trainers = join_all();
  leave(trainers[0], Departure::death);
  run_for(seconds(1));
  for (const TrainerId survivor : {trainers[1], trainers[2]}) {
    expect_words(told(survivor).failure(), {"server [0] (pid 100) died"});
  }
}

TEST_F(Nodes, TakeTrainersThatLeaveAndJoinAgainAtOnceByTheSameName) {
  auto before = join_all();
  const protocol::JobId old_job = nodes_.jobs(now_).front().id;
  std::vector<TrainerId> after;
  for (const TrainerId trainer : before) {
    leave(trainer);
    after.push_back(join(trainer.server));
  }
  run_for(seconds(2));
  for (const TrainerId trainer : after) {
    EXPECT_TRUE(told(trainer).admitted.has_value()) << told(trainer).why_refused;
    EXPECT_TRUE(told(trainer).notices.empty()) << told(trainer).failure();
  }
  const auto jobs = nodes_.jobs(now_);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].state, JobState::running);
  EXPECT_EQ(jobs[0].trainers.size(), 3u);
  EXPECT_NE(jobs[0].id, old_job);
  for (const TrainerId trainer : after) leave(trainer);
  expect_nothing_left();
}

TEST_F(Nodes, TakeOneTrainerThatComesBackWhileTheOthersHaveNotHeardYet) {
  const auto before = join_all();
  leave(before[1]);
  const TrainerId again = join(1);
  run_for(seconds(2));
  for (const TrainerId other : {before[0], before[2]}) {
    expect_words(told(other).failure(), {"server [1] (pid 101) left"});
    leave(other);
  }
  const TrainerId lowest = join(0);
  const TrainerId highest = join(2);
  run_for(seconds(2));
  for (const TrainerId trainer : {again, lowest, highest}) {
    EXPECT_TRUE(told(trainer).admitted.has_value()) << told(trainer).why_refused;
  }
  ASSERT_EQ(nodes_.jobs(now_).size(), 1u);
  EXPECT_EQ(nodes_.jobs(now_)[0].state, JobState::running);
}

// Questions ----------------------------------------------------------------

TEST_F(Nodes, AnswerWhoHasNotJoined) {
  const TrainerId first = join(0);
  const TrainerId second = join(1);
  run_for(milliseconds(100));
  expect_words(ask(first), {"1 of 3 trainers has not joined job \"mnist\"", "server [2]"});
  run_for(seconds(1));  // its leader is on another server
  nodes_.at(1).inquire(second, ++asked_, {0, 1}, now_);
  run_for(seconds(1));
  expect_words(told(second).report(), {"1 of 3 trainers has not joined", "server [2]"});
}

TEST_F(Nodes, AnswerWhoHasNotSubmitted) {
  const auto trainers = join_all();
  const std::string answer = ask(trainers[1]);
  expect_words(answer, {"collective 1 of job \"mnist\"", "have not submitted", "[0] (pid 100)",
                        "[1] (pid 101)", "[2] (pid 102)"});
  EXPECT_EQ(told(trainers[1]).notices.back().request, asked_);
}

TEST_F(Nodes, AnswerWhoseDaemonIsSilent) {
  const auto trainers = join_all();
  nodes_.remove(2);
  const std::string answer = ask(trainers[0]);
  expect_words(answer, {"collective 1 of job \"mnist\"", "daemon on server [2]"});
  EXPECT_EQ(answer.find("[1]"), std::string::npos) << answer;
}

TEST_F(Nodes, AnswerThatTheJobHasEndedOrHasNoSuchLane) {
  const auto trainers = join_all();
  nodes_.at(0).inquire(trainers[0], 8, {5, 1}, now_);
  EXPECT_EQ(told(trainers[0]).report(), "the job has no such lane");
  leave(trainers[1]);
  run_for(seconds(1));
  EXPECT_EQ(ask(trainers[0]), "the job has ended");
  const std::size_t before = told(trainers[0]).notices.size();
  nodes_.at(0).inquire({0, 99}, 9, {0, 1}, now_);
  nodes_.at(1).inquire(trainers[1], 9, {0, 1}, now_);
  run_for(seconds(1));
  EXPECT_EQ(told(trainers[0]).notices.size(), before);
  EXPECT_TRUE(told(trainers[1]).notices.empty());
}

TEST_F(Nodes, PassOnWhyATrainerGaveUpWaiting) {
  const auto trainers = join_all();
  ask(trainers[1]);
  leave(trainers[1]);
  run_for(seconds(1));
  expect_words(told(trainers[0]).failure(),
               {"server [1] (pid 101) left; collective 1 of job \"mnist\"", "not submitted"});
}

// Daemons ------------------------------------------------------------------

TEST_F(Nodes, EndTheJobsOfAServerOfWhichNothingIsHeard) {
  const auto trainers = join_all();
  nodes_.remove(2);
  run_for(control::GreetingTiming{}.silent_after - milliseconds(200));
  EXPECT_TRUE(told(trainers[0]).notices.empty());
  run_for(seconds(2));
  for (const TrainerId survivor : {trainers[0], trainers[1]}) {
    expect_words(told(survivor).failure(), {"nothing is heard of the daemon on server [2]"});
    leave(survivor);
  }
  expect_nothing_left();
}

TEST_F(Nodes, EndTheJobsThatARestartedServerHad) {
  const auto trainers = join_all();
  restart(2, 2);
  const TrainerId again = join(2);
  run_for(seconds(3));
  for (const TrainerId survivor : {trainers[0], trainers[1]}) {
    expect_words(told(survivor).failure(), {"the daemon on server [2]"});
    leave(survivor);
  }
  expect_words(told(trainers[0]).failure(), {"was restarted"});
  const TrainerId lowest = join(0);
  const TrainerId middle = join(1);
  run_for(seconds(2));
  for (const TrainerId trainer : {again, lowest, middle}) {
    EXPECT_TRUE(told(trainer).admitted.has_value()) << told(trainer).why_refused;
    EXPECT_TRUE(told(trainer).notices.empty()) << told(trainer).failure();
  }
}

TEST_F(Nodes, EndTheJobsOfARestartedServerThatNobodyJoinsAgain) {
  const auto trainers = join_all();
  restart(1, 2);
  run_for(seconds(4));
  for (const TrainerId survivor : {trainers[0], trainers[2]}) {
    expect_words(told(survivor).failure(), {"the daemon on server [1]"});
    leave(survivor);
  }
  expect_nothing_left();
}

TEST_F(Nodes, TellTheTrainerOfAServerThatStoodStillWhenItGoesOn) {
  const auto trainers = join_all();
  nodes_.stop(2);
  run_for(control::GreetingTiming{}.silent_after + milliseconds(300));
  for (const TrainerId survivor : {trainers[0], trainers[1]}) {
    expect_words(told(survivor).failure(), {"nothing is heard of the daemon on server [2]"});
  }
  EXPECT_TRUE(told(trainers[2]).notices.empty());
  nodes_.go_on(2);
  run_for(seconds(10));
  ASSERT_FALSE(told(trainers[2]).notices.empty());
  EXPECT_EQ(told(trainers[2]).notices[0].code, GRADCUBE_EPEER);
  for (const TrainerId trainer : trainers) leave(trainer);
  expect_nothing_left();
}

TEST_F(Nodes, KeepAJobWhoseServerStoodStillForAShortWhile) {
  const auto trainers = join_all();
  nodes_.stop(2);
  run_for(control::GreetingTiming{}.silent_after / 2);
  nodes_.go_on(2);
  run_for(seconds(5));
  for (const TrainerId trainer : trainers) {
    EXPECT_TRUE(told(trainer).notices.empty()) << told(trainer).failure();
  }
  ASSERT_EQ(nodes_.jobs(now_).size(), 1u);
  EXPECT_EQ(nodes_.jobs(now_)[0].state, JobState::running);
}

TEST_F(Nodes, DropWhatConcernsNoServerJobOrTrainerOfTheirs) {
  const auto trainers = join_all();
  nodes_.messages().send({0, 77, control::Greeting{1, true}}, now_);
  EngineEvent event;
  event.kind = EngineEvent::Kind::progress;
  event.job = 12345;
  nodes_.handle(event, now_);
  event.server = 77;
  nodes_.handle(event, now_);
  leave({0, 99});
  run_for(seconds(2));
  EXPECT_TRUE(told(trainers[0]).notices.empty());
  EXPECT_EQ(nodes_.jobs(now_).front().state, JobState::running);
}

// Faults -------------------------------------------------------------------

TEST_F(Nodes, SetUpAndEndJobsOverALinkThatLosesDoublesAndReordersMessages) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  nodes_.messages().set_faults({.loss = 0.2, .duplicate = 0.2, .longest_delay = milliseconds(30)});
  for (unsigned round = 0; round < 20; ++round) {
    std::vector<TrainerId> trainers;
    for (const bcube::ServerId server : nodes_.servers()) trainers.push_back(join(server));
    run_for(seconds(1));
    for (const TrainerId trainer : trainers) {
      ASSERT_TRUE(told(trainer).admitted.has_value()) << told(trainer).why_refused;
      ASSERT_TRUE(told(trainer).notices.empty()) << told(trainer).failure();
    }
    const TrainerId goes = trainers[round % 3];
    leave(goes, round % 2 == 0 ? Departure::orderly : Departure::death);
    run_for(seconds(3));
    for (const TrainerId trainer : trainers) {
      if (trainer == goes) continue;
      ASSERT_EQ(told(trainer).notices.size(), 1u);
      expect_words(told(trainer).failure(),
                   {topology_.space().text(goes.server) + " (pid", "no collective ended"});
      leave(trainer);
    }
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace gradcube::dataplane
