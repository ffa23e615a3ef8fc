// Who is told what when trainers and daemons go, and what remains of their jobs.

#include "tests/unit/dataplane/daemon/nodes_fixture.h"

namespace gradcube::dataplane {
namespace {

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
  EXPECT_EQ(jobs[0].why, "the trainer of job \"mnist\" on server [1] (pid 101) died");
  EXPECT_EQ(jobs[0].trainers.size(), 2u);
  const std::size_t logged = recorder_.log.size();
  leave(trainers[0], Departure::death);
  leave(trainers[2]);
  EXPECT_EQ(recorder_.log.size(), logged) << "their job had ended";
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

TEST_F(Nodes, LetATrainerThatComesBackWaitUntilTheOthersHaveLeftTheOldJob) {
  const auto before = join_all();
  leave(before[1]);
  const TrainerId again = join(1);
  run_for(seconds(20));
  EXPECT_FALSE(told(again).admitted.has_value());
  for (const TrainerId other : {before[0], before[2]}) {
    EXPECT_TRUE(told(other).notices.empty()) << "nothing has ended for them";
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
  stop(2);
  run_for(control::GreetingTiming{}.silent_after + milliseconds(300));
  for (const TrainerId survivor : {trainers[0], trainers[1]}) {
    expect_words(told(survivor).failure(), {"nothing is heard of the daemon on server [2]"});
  }
  EXPECT_TRUE(told(trainers[2]).notices.empty());
  go_on(2);
  run_for(seconds(10));
  ASSERT_FALSE(told(trainers[2]).notices.empty());
  EXPECT_EQ(told(trainers[2]).notices[0].code, GRADCUBE_EPEER);
  for (const TrainerId trainer : trainers) leave(trainer);
  expect_nothing_left();
}

TEST_F(Nodes, KeepAJobWhoseServerStoodStillForAShortWhile) {
  const auto trainers = join_all();
  stop(2);
  run_for(control::GreetingTiming{}.silent_after / 2);
  go_on(2);
  run_for(seconds(5));
  for (const TrainerId trainer : trainers) {
    EXPECT_TRUE(told(trainer).notices.empty()) << told(trainer).failure();
  }
  ASSERT_EQ(nodes_.jobs(now_).size(), 1u);
  EXPECT_EQ(nodes_.jobs(now_)[0].state, JobState::running);
}

TEST_F(Nodes, DropWhatConcernsNoServerJobOrTrainerOfTheirs) {
  const auto trainers = join_all();
  nodes_.messages().push_back({0, 77, control::Greeting{1, true}});
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
  divert_messages();
  queue_.set_faults({.loss = 0.2, .duplicate = 0.2, .longest_delay = milliseconds(30)});
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
      ASSERT_EQ(told(trainer).notices.size(), round % 2);
      if (round % 2 == 1) {
        expect_words(told(trainer).failure(),
                     {topology_.space().text(goes.server) + " (pid", "no collective ended"});
      }
      leave(trainer);
    }
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace gradcube::dataplane
