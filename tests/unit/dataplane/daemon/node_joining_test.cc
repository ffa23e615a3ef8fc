// Who is admitted to a job, who is refused with which sentence, and what a trainer that asks hears.

#include "dataplane/daemon/process/attended_clock.h"
#include "tests/unit/dataplane/daemon/nodes_fixture.h"

namespace gradcube::dataplane {
namespace {

// Joining ------------------------------------------------------------------

TEST_F(Nodes, HaveNothingToDoWithoutTrainers) {
  EXPECT_FALSE(nodes_.deadline().has_value());
  EXPECT_FALSE(nodes_.run(now_));
  EXPECT_TRUE(nodes_.messages().empty()) << "an idle node greets nobody";
  run_for(seconds(5));
  EXPECT_FALSE(nodes_.run(now_));
  EXPECT_TRUE(nodes_.idle());
}

TEST_F(Nodes, AdmitATrainerWhenItsLeaderHasAnsweredAndNotBefore) {
  divert_messages();
  queue_.cut(0, 2);
  const TrainerId trainer = join(2);
  EXPECT_FALSE(told(trainer).admitted.has_value()) << "nothing happens within the call";
  run_for(seconds(1));
  EXPECT_FALSE(told(trainer).admitted.has_value());
  queue_.mend();
  run_for(seconds(1));
  ASSERT_TRUE(told(trainer).admitted.has_value());
  EXPECT_EQ(told(trainer).admitted->rank, 2u);
  EXPECT_EQ(told(trainer).admitted->size, 3u);
  EXPECT_GE(told(trainer).admitted->region_descriptor, 0);
}

// As where a round's work takes so long that others must have their turn, and so does the rest.
TEST_F(Nodes, BeginAJobInRoundsThatMayDoLittleAndTakeNobodyForLateMeanwhile) {
  nodes_.around().greet_each_other = false;  // as in one process
  std::vector<TrainerId> trainers;
  for (const bcube::ServerId server : nodes_.servers()) trainers.push_back(join(server));
  unsigned rounds = 0;
  do {
    int may = 1;
    nodes_.run(now_, [&may] { return may-- > 0; });
    nodes_.look(now_);
    now_ += AttendedClock::kMost;
    ASSERT_LT(++rounds, 1000u);
  } while (nodes_.has_more());
  EXPECT_GT(rounds * AttendedClock::kMost, control::JobTiming{}.phase) << "nobody would be late";
  run_for(milliseconds(100));
  for (const TrainerId trainer : trainers) {
    EXPECT_TRUE(told(trainer).admitted.has_value());
    EXPECT_EQ(told(trainer).failure(), "");
  }
  ASSERT_EQ(nodes_.jobs(now_).size(), 1u);
  EXPECT_EQ(nodes_.jobs(now_)[0].state, JobState::running);
  for (const TrainerId trainer : trainers) leave(trainer);
  expect_nothing_left();
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

TEST_F(Nodes, TakeNoTrainersWhereTheyAreAggregatorsAndJobsOnAllServersAreOnTheOthers) {
  nodes_.around().aggregators = {2};
  const auto refusal_of = [&](bcube::ServerId server, const TrainerRequest& asks) {
    try {
      join(server, asks);
    } catch (const JoinRefused& refused) {
      EXPECT_EQ(refused.code(), GRADCUBE_EJOB);
      return std::string(refused.what());
    }
    return std::string();
  };
  expect_words(refusal_of(2, request(2)),
               {"job \"mnist\"", "server [2] is an aggregator", "takes no trainers"});
  TrainerRequest asks = request(0);
  asks.options.members = {0, 2};
  expect_words(refusal_of(0, asks), {"members", "server [2] is an aggregator"});
  EXPECT_TRUE(nodes_.idle());
  const std::vector<TrainerId> trainers = {join(0), join(1)};
  run_for(milliseconds(100));
  for (const TrainerId trainer : trainers) {
    ASSERT_TRUE(told(trainer).admitted.has_value());
    EXPECT_EQ(told(trainer).admitted->size, 2u);
  }
  EXPECT_EQ(nodes_.jobs(now_).at(0).state, JobState::running);
}

TEST_F(Nodes, RefuseATrainerThatWantsReproducibleResultsWhereOthersDoNot) {
  join(0);
  TrainerRequest asks = request(1);
  asks.options.reproducible = true;
  const TrainerId trainer = join(1, asks);
  run_for(milliseconds(100));
  EXPECT_EQ(told(trainer).refusal, GRADCUBE_EJOB);
  expect_words(told(trainer).why_refused, {"job \"mnist\"", "reproducible", "expected"});
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

TEST_F(Nodes, RefuseAnAlgorithmThatThereIsNotOrThatTheirServersCannotRunAndSayWhatCould) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> refused = {
      {"bogus", {"no such algorithm", "expected bml"}},
      {"halving_doubling", {"3 servers", "power of two", "runs on these servers: "}},
      {"blueconnect:2x2", {"2x2 is not 3", "for example 3"}},
      {"hips:mesh,mesh", {"lists 2 patterns", "expected 1"}},
  };
  for (const auto& [algorithm, words] : refused) {
    TrainerRequest asks = request(1);
    asks.options.lanes.resize(1);
    asks.options.lanes[0].algorithm = algorithm;
    try {
      join(1, asks);
      ADD_FAILURE() << "joined with " << algorithm;
    } catch (const JoinRefused& refusal) {
      EXPECT_EQ(refusal.code(), GRADCUBE_EINVAL);
      expect_words(refusal.what(), words);
    }
  }
  EXPECT_TRUE(nodes_.at(1).idle());
}

TEST_F(NodesWithoutTheLowest, RefuseATrainerWhoseLeaderDoesNotAnswerAndNameItsServer) {
  const TrainerId trainer = join(1);
  run_for(control::JobTiming{}.phase - milliseconds(50));
  EXPECT_EQ(told(trainer).refusal, 0);
  run_for(milliseconds(100));
  EXPECT_EQ(told(trainer).refusal, GRADCUBE_EJOB);
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

// Other members by the same name --------------------------------------------

class NodesOfTwoJobsOfOneName : public Nodes {
 protected:
  TrainerId join(bcube::ServerId server, const std::vector<bcube::ServerId>& members) {
    TrainerRequest asks = request(server);
    asks.options.members = members;
    return Nodes::join(server, asks);
  }
};

TEST_F(NodesOfTwoJobsOfOneName, SayWhichTrainerIsInTheOtherAndEndTheOneThatCannotBegin) {
  const TrainerId for_all = join(0, {0, 1, 2});
  const TrainerId for_two = join(1, {1, 2});
  run_for(seconds(1));
  expect_words(ask(for_all), {"2 of 3 trainers have not joined", "server [1] (pid 101)",
                              "by the same job name", "2 servers [1] [2]"});
  EXPECT_TRUE(told(for_all).failure().empty()) << "the other may be about to leave";
  run_for(seconds(3));
  expect_words(told(for_all).failure(),
               {"job \"mnist\" is for all 3 servers", "server [1] (pid 101)", "2 servers [1] [2]"});
  EXPECT_TRUE(told(for_two).failure().empty()) << "it can begin yet";
  const TrainerId other = join(2, {1, 2});
  run_for(milliseconds(100));
  EXPECT_TRUE(told(other).admitted.has_value());
  for (const TrainerId trainer : {for_all, for_two, other}) leave(trainer);
  expect_nothing_left();
}

TEST_F(NodesOfTwoJobsOfOneName, GoOnWhenTheOtherIsLeftInTime) {
  const TrainerId for_all = join(0, {0, 1, 2});
  for (std::uint32_t pid = 201; pid < 204; ++pid) {
    TrainerRequest asks = request(1);
    asks.pid = pid;
    asks.options.members = {1, 2};
    const TrainerId for_two = Nodes::join(1, asks);
    run_for(milliseconds(1'200));
    expect_words(ask(for_all), {"server [1] (pid " + std::to_string(pid) + ")"});
    leave(for_two);
  }
  run_for(seconds(3));
  EXPECT_EQ(ask(for_all).find("pid"), std::string::npos) << "nobody is there";
  const TrainerId again = join(1, {1, 2});
  run_for(seconds(1));
  leave(again);
  std::vector<TrainerId> trainers{for_all, join(1, {0, 1, 2}), join(2, {0, 1, 2})};
  run_for(seconds(1));
  for (const TrainerId trainer : trainers) {
    EXPECT_TRUE(told(trainer).admitted.has_value());
    EXPECT_TRUE(told(trainer).failure().empty()) << told(trainer).failure();
    leave(trainer);
  }
  expect_nothing_left();
}

TEST_F(Nodes, TellThoseWhoWaitThatATrainerWasRefused) {
  const TrainerId first = join(0);
  TrainerRequest heavy = request(1);
  heavy.options.weight = 2;
  const TrainerId refused = join(1, heavy);
  run_for(milliseconds(100));
  EXPECT_EQ(told(refused).refusal, GRADCUBE_EJOB);
  expect_words(ask(first),
               {"2 of 3 trainers have not joined", "server [1] (pid 101) was refused", "weight 2"});
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
  leave(trainers[1], Departure::death);
  run_for(seconds(1));
  EXPECT_EQ(ask(trainers[0]), "the job has ended");
  const std::size_t before = told(trainers[0]).notices.size();
  nodes_.at(0).inquire({0, 99}, 9, {0, 1}, now_);
  nodes_.at(1).inquire(trainers[1], 9, {0, 1}, now_);
  run_for(seconds(1));
  EXPECT_EQ(told(trainers[0]).notices.size(), before);
  EXPECT_TRUE(told(trainers[1]).notices.empty());
}

}  // namespace
}  // namespace gradcube::dataplane
