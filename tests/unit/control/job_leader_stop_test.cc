// How a leader stops a job and what it makes of what the trainers have submitted.

#include "tests/unit/control/job_leader_fixture.h"

namespace gradcube::control {
namespace {

TEST_F(JobLeaderTest, WaitsUntilAllHaveCompletedWhatPrecedesTheDisagreement) {
  run();
  EXPECT_TRUE(hear(1, Disagree{1, {0, 4, 3, "x"}}).empty()) << "another epoch";
  EXPECT_EQ(asked<Hold>(fail({0, 4, 3, "x"})), (Servers{0, 1, 2}));
  hear(0, held(0, {6, 9}, {3, 8}, {}, {}));
  hear(1, held(0, {5, 8}, {2, 8}, {}, {}));
  EXPECT_TRUE(asked<Reset>(hear(2, held(0, {4, 8}, {3, 8}, {}, {}))).empty());
  EXPECT_EQ(asked<Hold>(wait(timing_.repeat)), Servers{1});
  EXPECT_TRUE(asked<Reset>(hear(1, held(1, {5, 8}, {3, 8}, {}, {}))).empty()) << "another epoch";
  const JobActions out = hear(1, held(0, {5, 8}, {3, 8}, {}, {}));
  EXPECT_EQ(asked<Reset>(out), (Servers{0, 1, 2}));
  const Reset reset = first<Reset>(out);
  EXPECT_EQ(reset.epoch, 1u);
  EXPECT_EQ(reset.cut.done, (LaneNumbers{3, 8}));
  EXPECT_EQ(reset.cut.failed, (LaneNumbers{6, 9})) << "all that any trainer has submitted";
  EXPECT_EQ(reset.cut.code, 3);
}

TEST_F(JobLeaderTest, WaitsUntilAllHaveSubmittedWhatPrecedesTheDisagreement) {
  run();
  EXPECT_EQ(asked<Ask>(hear(1, Disagree{0, {0, 4, 3, "x"}})), (Servers{0, 1, 2}));
  EXPECT_EQ(leader_.phase(), Phase::catching_up);
  hear(0, Counts{0, 7, {4, 0}, {}});
  hear(1, Counts{0, 7, {3, 0}, {}});
  EXPECT_TRUE(hear(2, Counts{0, 7, {2, 9}, {}}).empty());
  EXPECT_EQ(asked<Ask>(wait(timing_.repeat)), Servers{2});
  EXPECT_TRUE(hear(2, Counts{0, 7, {1, 9}, {}}).empty()) << "sent before";
  EXPECT_TRUE(hear(2, Counts{0, 7, {9}, {}}).empty()) << "not of this job";
  EXPECT_EQ(asked<Hold>(hear(2, Counts{0, 7, {3, 9}, {}})), (Servers{0, 1, 2}));
}

TEST_F(JobLeaderTest, DoesWithoutWhatIsNotSubmittedInTimeAndTellsSo) {
  run();
  hear(1, Disagree{0, {0, 4, 3, "x"}});
  hear(0, Counts{0, 7, {4, 0}, {}});
  wait(timing_.catch_up - milliseconds(1));
  EXPECT_EQ(leader_.phase(), Phase::catching_up);
  EXPECT_EQ(asked<Hold>(wait(milliseconds(1))), (Servers{0, 1, 2}));
  hear(0, held(0, {4, 0}, {1, 0}, {}, {}));
  hear(1, held(0, {4, 0}, {1, 0}, {}, {}));
  const Reset reset = first<Reset>(hear(2, held(0, {1, 0}, {1, 0}, {}, {})));
  EXPECT_EQ(reset.cut.done, (LaneNumbers{1, 0}));
  EXPECT_EQ(reset.cut.failed, (LaneNumbers{4, 0}));
  EXPECT_NE(reset.cut.text.find("; what comes before it was not submitted in time on 1 server [2]; "
                                "failed: collectives 2 to 4 of lane 0"),
            std::string::npos)
      << reset.cut.text;
}

TEST_F(JobLeaderTest, WaitsForNothingMoreFromATrainerThatHasLeft) {
  run();
  hear(1, Disagree{0, {0, 4, 3, "x"}});
  hear(0, Counts{0, 7, {4, 0}, {}});
  EXPECT_TRUE(hear(2, Leave{"the trainer left"}).empty()) << "the next one may still submit it";
  EXPECT_EQ(asked<Hold>(hear(1, Counts{0, 7, {3, 0}, {}})), (Servers{0, 1, 2}));
}

TEST_F(JobLeaderTest, WaitsForWhatPrecedesEachOfTheDisagreementsThatAreFoundMeanwhile) {
  run();
  hear(1, Disagree{0, {0, 9, 3, "x"}});
  hear(1, Disagree{0, {1, 3, 3, "y"}});
  hear(0, Counts{0, 7, {8, 2}, {}});
  hear(1, Counts{0, 7, {8, 2}, {}});
  EXPECT_TRUE(hear(2, Counts{0, 7, {8, 1}, {}}).empty());
  EXPECT_EQ(asked<Hold>(hear(2, Counts{0, 7, {8, 2}, {}})).size(), 3u);
}

TEST_F(JobLeaderTest, DoesNotWaitForWhatLiesBehindAnEarlierDisagreement) {
  run();
  hear(1, Disagree{0, {0, 9, 3, "x"}});
  hear(0, Counts{0, 7, {9, 0}, {}});
  hear(1, Counts{0, 7, {9, 0}, {}});
  hear(2, Counts{0, 7, {2, 0}, {}});
  const JobActions out = hear(2, Disagree{0, {0, 2, 3, "y"}});
  EXPECT_EQ(first<Hold>(out).asked, (CollectiveName{0, 2})) << "it is what matters now";
}

TEST_F(JobLeaderTest, NeedsNothingBeforeTheFirstCollective) {
  run();
  EXPECT_EQ(asked<Hold>(hear(1, Disagree{0, {0, 1, 3, "x"}})).size(), 3u);
}

TEST_F(JobLeaderTest, CutsBeforeTheFirstOfTheDisagreementsThatAreFoundMeanwhileAndTellsIt) {
  run();
  fail({0, 4, 3, "x"});
  const std::vector<Disagreement> earlier{{0, 2, 3, "y"}, {1, 1, 3, "z"}};
  hear(1, held(0, {6, 9}, {1, 0}, {}, "the fourth"));
  hear(2, held(0, {6, 9}, {1, 0}, {}, "the fourth"));
  const Held old = held(0, {6, 9}, {1, 0}, {}, "the fourth");
  const JobActions again = hear(0, held(0, {6, 9}, {1, 0}, earlier, "the fourth"));
  EXPECT_EQ(asked<Hold>(again), (Servers{0, 1, 2}));
  EXPECT_EQ(first<Hold>(again).asked, (CollectiveName{0, 2}));
  hear(0, held(0, {6, 9}, {1, 0}, earlier, "barrier"));
  hear(1, held(0, {6, 9}, {1, 0}, {}, "broadcast"));
  EXPECT_TRUE(hear(2, old).empty()) << "under way since before";
  const JobCut cut = first<Reset>(hear(2, held(0, {6, 9}, {1, 0}, {}, "broadcast"))).cut;
  EXPECT_EQ(cut.done, (LaneNumbers{1, 0}));
  EXPECT_EQ(cut.text,
            "collective 2 of lane 0 of job \"mnist\": the trainers disagree on kind, count, type, "
            "operation or root: [0] submitted barrier; [1] [2] submitted broadcast (met at y); all "
            "trainers must submit the same collectives in the same order; failed: collectives 2 to "
            "6 of lane 0, collectives 1 to 9 of lane 1");
}

TEST_F(JobLeaderTest, TellsADisagreementThatComesBeforeAnOverflow) {
  run();
  fail({0, 4, 5, "it overflowed", Disagreement::Cause::overflow});
  hear(0, held(0, {6, 0}, {1, 0}, {{0, 2, 3, "y"}}, ""));
  hear(0, held(0, {6, 0}, {1, 0}, {{0, 2, 3, "y"}}, "barrier"));
  hear(1, held(0, {6, 0}, {1, 0}, {}, "broadcast"));
  const JobCut cut = first<Reset>(hear(2, held(0, {6, 0}, {1, 0}, {}, "broadcast"))).cut;
  EXPECT_EQ(cut.code, 3);
  EXPECT_NE(cut.text.find("collective 2 of lane 0"), std::string::npos) << cut.text;
}

TEST_F(JobLeaderTest, KeepsTheGreaterCountWhenReportsOvertakeEachOther) {
  run();
  fail({0, 4, 3, "x"});
  hear(0, held(0, {3, 0}, {3, 0}, {}, {}));
  hear(0, held(0, {3, 0}, {2, 0}, {}, {}));
  hear(1, held(0, {3, 0}, {3, 0}, {}, {}));
  EXPECT_EQ(asked<Reset>(hear(2, held(0, {3, 0}, {3, 0}, {}, {}))).size(), 3u);
}

TEST_F(JobLeaderTest, NamesTheServerThatDoesNotCompleteWhatAllHaveSubmitted) {
  run();
  fail({0, 4, 3, "x"});
  hear(0, held(0, {3, 0}, {3, 0}, {}, {}));
  hear(1, held(0, {3, 0}, {2, 0}, {}, {}));
  hear(2, held(0, {3, 0}, {3, 0}, {}, {}));
  wait(timing_.run_on - milliseconds(1));
  EXPECT_EQ(leader_.phase(), Phase::stopping);
  const std::string why = first<Abort>(wait(milliseconds(1))).why;
  EXPECT_NE(why.find("collective 4 of lane 0 of job \"mnist\": the trainers disagree"),
            std::string::npos)
      << why;
  EXPECT_NE(why.find("server [1] does not complete collective 3 of lane 0 of job \"mnist\", which "
                     "all trainers have submitted"),
            std::string::npos)
      << why;
}

TEST_F(JobLeaderTest, WaitsForWhatAllHaveSubmittedAsLongAsSomeOfItCompletes) {
  run();
  fail({0, 9, 3, "x"});
  hear(0, held(0, {8, 0}, {8, 0}, {}, {}));
  hear(1, held(0, {8, 0}, {0, 0}, {}, {}));
  hear(2, held(0, {8, 0}, {8, 0}, {}, {}));
  for (std::uint64_t completed = 1; completed < 8; ++completed) {
    wait(timing_.run_on - milliseconds(1));
    const JobActions out = hear(1, held(0, {8, 0}, {completed, 0}, {}, {}));
    EXPECT_EQ(leader_.phase(), Phase::stopping);
    EXPECT_EQ(asked<Hold>(out).size(), 3u) << "also of those that are done, which wait, too";
  }
  EXPECT_EQ(asked<Reset>(hear(1, held(0, {8, 0}, {8, 0}, {}, {}))).size(), 3u);
}

TEST_F(JobLeaderTest, WaitsForWhatAllHaveSubmittedAsLongAsSegmentsOfItPass) {
  run();
  fail({0, 9, 3, "x"});
  hear(0, held(0, {8, 1}, {8, 1}, {}, {}));
  hear(2, held(0, {8, 1}, {8, 1}, {}, {}));
  Held slow = held(0, {8, 1}, {8, 0}, {}, {});
  for (slow.segments = 5; slow.segments < 9; ++slow.segments) {
    const JobActions out = hear(1, slow);
    EXPECT_EQ(leader_.phase(), Phase::stopping);
    const std::size_t waiting = slow.segments == 5 ? 0 : 3;
    EXPECT_EQ(asked<Hold>(out).size(), waiting) << "also of those that are done, which wait, too";
    wait(timing_.run_on - milliseconds(1));
  }
  slow.segments = 7;
  hear(1, slow);
  EXPECT_NE(first<Abort>(wait(milliseconds(1))).why.find("server [1] does not complete"),
            std::string::npos)
      << "that was sent before";
}

TEST_F(JobLeaderTest, NamesAllServersThatDoNotCompleteOrDoNotAnswer) {
  run();
  fail({0, 4, 3, "x"});
  hear(0, held(0, {3, 0}, {2, 0}, {}, {}));
  hear(1, held(0, {3, 0}, {3, 0}, {}, {}));
  JobLeader other = leader_;
  std::string why = first<Abort>(wait(timing_.run_on)).why;
  EXPECT_EQ(why,
            "the trainers disagree on collective 4 of lane 0 of job \"mnist\"; what all had "
            "submitted did not end in time: the daemon on server [2] does not answer for job "
            "\"mnist\"");
  leader_ = other;
  hear(2, held(0, {3, 0}, {2, 0}, {}, {}));
  why = first<Abort>(wait(timing_.run_on)).why;
  EXPECT_NE(why.find("servers [0], [2] do not complete collective 3 of lane 0 of job"),
            std::string::npos)
      << why;
}

TEST_F(JobLeaderTest, EndsAJobWhoseOutcomeCannotBeTheSameEverywhere) {
  run();
  fail({0, 4, 3, "x"});
  hear(0, held(0, {5, 0}, {5, 0}, {}, {}));
  hear(1, held(0, {5, 0}, {3, 0}, {}, {}));
  EXPECT_EQ(first<Abort>(hear(2, held(0, {4, 0}, {3, 0}, {}, {}))).why,
            "server [0] completed collective 5 of lane 0 of job \"mnist\" before all trainers "
            "agreed on it");
}

TEST_F(JobLeaderTest, LetsAllCompleteWhatTheyShareWithATrainerThatLeaves) {
  run();
  hear(1, Leave{"the trainer left"});
  EXPECT_EQ(leader_.phase(), Phase::stopping);
  hear(0, held(0, {5, 0}, {3, 0}, {}, {}));
  hear(1, held(0, {4, 0}, {4, 0}, {}, {}));
  hear(2, held(0, {5, 0}, {4, 0}, {}, {}));
  const Abort end = first<Abort>(hear(0, held(0, {5, 0}, {4, 0}, {}, {})));
  EXPECT_EQ(end.why, "the trainer left");
  EXPECT_EQ(end.common, (LaneNumbers{4, 0}));
}

// Whoever has left may have received it. What is sent as a whole later it cannot have.
TEST_F(JobLeaderTest, LetsAllLearnWhatATrainerThatLeavesHasReceived) {
  run();
  hear(1, Leave{"the trainer left"});
  hear(1, held(0, {4, 0}, {4, 0}, {}, {}));
  hear(2, held(0, {4, 0}, {4, 0}, {}, {}));
  Held sends = held(0, {4, 0}, {4, 0}, {}, {});
  sends.unanswered = 2;
  EXPECT_TRUE(hear(0, sends).empty());
  sends.unanswered = 1;
  EXPECT_TRUE(hear(0, sends).empty());
  sends.unanswered = 2;  // older news
  EXPECT_TRUE(hear(0, sends).empty());
  sends.unanswered = 0;
  EXPECT_EQ(first<Abort>(hear(0, sends)).why, "the trainer left");
}

TEST_F(JobLeaderTest, DoesNotWaitForEverForTheEndOfAMessage) {
  run();
  hear(1, Leave{"the trainer left"});
  hear(1, held(0, {4, 0}, {4, 0}, {}, {}));
  hear(2, held(0, {4, 0}, {4, 0}, {}, {}));
  Held sends = held(0, {4, 0}, {4, 0}, {}, {});
  sends.unanswered = 1;
  hear(0, sends);
  EXPECT_EQ(first<Abort>(wait(timing_.run_on)).why, "the trainer left");
}

// A reset ends no message.
TEST_F(JobLeaderTest, ResetsAJobWhoseMessagesAreUnderWay) {
  run();
  fail({0, 2, 3, "x"});
  hear(1, held(0, {4, 0}, {1, 0}, {}, {}));
  hear(2, held(0, {4, 0}, {1, 0}, {}, {}));
  Held sends = held(0, {4, 0}, {1, 0}, {}, {});
  sends.unanswered = 1;
  EXPECT_EQ(first<Reset>(hear(0, sends)).cut.done, (LaneNumbers{1, 0}));
}

TEST_F(JobLeaderTest, TellsWhoSubmittedWhatTheTrainersDisagreeOn) {
  run();
  const JobActions hold = fail({1, 4, 3, "server [1], thread 0, step 1"});
  EXPECT_EQ(first<Hold>(hold).asked, (CollectiveName{1, 4}));
  hear(0, held(0, {0, 4}, {0, 3}, {}, "barrier"));
  hear(1, held(0, {0, 4}, {0, 3}, {}, "all_reduce of 9 float32 sum"));
  hear(2, held(0, {0, 3}, {0, 2}, {}, "nothing yet"));
  const JobActions out = hear(2, held(0, {0, 3}, {0, 3}, {}, "nothing yet"));
  EXPECT_EQ(first<Reset>(out).cut.text,
            "collective 4 of lane 1 of job \"mnist\": the trainers disagree on kind, count, type, "
            "operation or root: [1] submitted all_reduce of 9 float32 sum; [0] submitted barrier; "
            "[2] submitted nothing yet (met at server [1], thread 0, step 1); all trainers must "
            "submit the same collectives in the same order; failed: collective 4 of lane 1");
}

constexpr auto kOverflow = Disagreement::Cause::overflow;

TEST_F(JobLeaderTest, LetsServersKeepWhatTheyCompletedBeyondAnOverflow) {
  run();
  const JobActions hold = fail({0, 4, 5, "it overflowed", kOverflow});
  EXPECT_EQ(first<Hold>(hold).asked, (CollectiveName{0, 4}));
  hear(0, held(0, {5, 0}, {5, 0}, {}, {}));
  hear(1, held(0, {5, 0}, {3, 0}, {}, {}));
  const JobActions out = hear(2, held(0, {5, 0}, {4, 0}, {}, {}));
  EXPECT_EQ(first<Reset>(out).cut.done, (LaneNumbers{3, 0}));
  EXPECT_EQ(first<Reset>(out).cut.failed, (LaneNumbers{5, 0}));
  EXPECT_EQ(first<Reset>(out).cut.text, "it overflowed");
}

TEST_F(JobLeaderTest, EndsAJobThatWentPastADisagreementAfterAnOverflow) {
  run();
  fail({0, 2, 5, "it overflowed", kOverflow});
  hear(0, held(0, {5, 0}, {4, 0}, {{0, 4, 3, "x"}}, {}));
  hear(1, held(0, {5, 0}, {1, 0}, {}, {}));
  EXPECT_EQ(asked<Abort>(hear(2, held(0, {5, 0}, {1, 0}, {}, {}))).size(), 3u);
}

TEST_F(JobLeaderTest, TellsAnOverflowBeforeTheLeavingOfATrainerThatHadItsResult) {
  run();
  hear(1, Leave{"the trainer left"});
  hear(0, held(0, {4, 0}, {3, 0}, {{0, 4, 5, "it overflowed", kOverflow}}, {}));
  hear(1, held(0, {4, 0}, {4, 0}, {}, {}));
  EXPECT_EQ(asked<Hold>(hear(2, held(0, {4, 0}, {3, 0}, {}, {}))).size(), 3u);
  hear(0, held(0, {4, 0}, {3, 0}, {}, {}));
  hear(1, held(0, {4, 0}, {4, 0}, {}, {}));
  const JobActions out = hear(2, held(0, {4, 0}, {3, 0}, {}, {}));
  EXPECT_EQ(first<Reset>(out).cut.text, "it overflowed");
}

TEST_F(JobLeaderTest, TellsTheFirstFailureOfTheLaneBeforeTheLeavingOfATrainer) {
  run();
  hear(1, Leave{"the trainer left"});
  hear(0, held(0, {4, 0}, {1, 0}, {{0, 4, 5, "it overflowed", kOverflow}}, {}));
  hear(1, held(0, {4, 0}, {1, 0}, {{0, 2, 3, "x"}}, {}));
  hear(2, held(0, {4, 0}, {1, 0}, {}, {}));
  hear(0, held(0, {4, 0}, {1, 0}, {}, "barrier"));
  hear(1, held(0, {4, 0}, {1, 0}, {}, "broadcast"));
  const JobCut cut = first<Reset>(hear(2, held(0, {4, 0}, {1, 0}, {}, "broadcast"))).cut;
  EXPECT_EQ(cut.done, (LaneNumbers{1, 0}));
  EXPECT_NE(cut.text.find("[0] submitted barrier; [1] [2] submitted broadcast"), std::string::npos)
      << cut.text;
}

TEST_F(JobLeaderTest, NamesTheServerThatDoesNotSayWhatItWasAskedAnew) {
  run();
  fail({0, 4, 3, "x"});
  hear(1, held(0, {4, 0}, {1, 0}, {}, "barrier"));
  hear(2, held(0, {4, 0}, {1, 0}, {}, "barrier"));
  hear(0, held(0, {4, 0}, {1, 0}, {{0, 2, 3, "y"}}, "barrier"));
  hear(0, held(0, {4, 0}, {1, 0}, {}, "barrier"));
  hear(1, held(0, {4, 0}, {1, 0}, {}, "barrier"));
  const std::string why = first<Abort>(wait(timing_.run_on)).why;
  EXPECT_NE(why.find("the daemon on server [2] does not answer"), std::string::npos) << why;
}

TEST_F(JobLeaderTest, HeedsNoFailureOfALaneThatTheJobHasNot) {
  run();
  EXPECT_TRUE(hear(1, Disagree{0, {2, 4, 3, "x"}}).empty());
  EXPECT_TRUE(hear(1, Disagree{0, {0, 0, 3, "x"}}).empty());
  EXPECT_EQ(leader_.phase(), Phase::running);
}

TEST_F(JobLeaderTest, WaitsLessAfterADeathThanAfterALeave) {
  run();
  hear(1, Leave{"it died", true});
  EXPECT_TRUE(asked<Abort>(wait(timing_.run_on_after_death - milliseconds(1))).empty());
  EXPECT_EQ(first<Abort>(wait(milliseconds(1))).why, "it died");
}

TEST_F(JobLeaderTest, ShortensTheWaitWhenAnotherTrainerDies) {
  run();
  hear(1, Leave{"it left"});
  wait(timing_.run_on_after_death);
  hear(2, Leave{"it died", true});
  EXPECT_EQ(first<Abort>(wait(timing_.run_on_after_death)).why, "it left");
}

}  // namespace
}  // namespace gradcube::control
