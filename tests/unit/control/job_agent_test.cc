#include "tests/unit/control/job_agent_fixture.h"

namespace gradcube::control {
namespace {

Hold hold_in(Epoch epoch) { return {epoch, "a trainer left", std::nullopt}; }

TEST_F(JobAgentTest, TellsAtOnceThatMoreOfItsTrainersHaveJoined) {
  EXPECT_EQ(first<Join>(wait(milliseconds(0)), 0).trainers, 1u);
  EXPECT_EQ(first<Join>(happen(event::TrainerJoined{}), 0).trainers, 2u);
  EXPECT_EQ(first<Join>(wait(timing_.repeat), 0).trainers, 2u);
}

TEST_F(JobAgentTest, TellsTheTrainersThatStayOfTheEnd) {
  wait(milliseconds(0));
  happen(event::TrainerLeft{"trainer 1 left", false, true});
  EXPECT_TRUE(agent_.trainer_gone());
  const JobActions out = wait(timing_.phase);
  ASSERT_TRUE(told<notice::Ended>(out).has_value()) << "although no leader answers";
  EXPECT_EQ(told<notice::Ended>(out)->why, "trainer 1 left");
  EXPECT_TRUE(agent_.over());
}

TEST_F(JobAgentTest, IgnoresAJobThatIsNotWhatItsTrainerAskedFor) {
  JobDescriptor right;
  right.id = kJob;
  right.name = "mnist";
  right.options = {{{"bml", 0}}, 1, {0, 1, 2}};
  right.members = {{0, 0, 20, 9}, {1, 1, 10, 4}, {2, 2, 30, 6}};
  const auto expect_ignored = [&](auto&& change) {
    JobDescriptor wrong = right;
    change(wrong);
    EXPECT_FALSE(ordered<command::Prepare>(hear(Prepare{wrong})));
  };
  expect_ignored([](JobDescriptor& job) { job.options.lanes.push_back({"bml", 0}); });
  expect_ignored([](JobDescriptor& job) { job.members.pop_back(); });
  expect_ignored([](JobDescriptor& job) { job.members[2].server = 3; });
  expect_ignored([](JobDescriptor& job) { job.members[2].rank = 1; });
  expect_ignored([](JobDescriptor& job) { job.members[2].rank = 3; });
  expect_ignored([](JobDescriptor& job) { job.members[1].attempt = 5; });
  EXPECT_TRUE(ordered<command::Prepare>(hear(Prepare{right})));
}

TEST_F(JobAgentTest, HeedsNobodyButItsLeaderAndTheOtherAgentsOfItsJob) {
  const JobEnd strangers[] = {{2, 30, 7}, {2, 30, 0}, {0, 20, 8}, {5, 50, 1}, {5, 50, 0}};
  const JobBody bodies[] = {Abort{"it lies", {}, LaneNumbers{9}, LaneNumbers{9}, false}, Unknown{},
                            Hold{0, "it lies", std::nullopt}, Refused{"it lies"}, Ask{5}};
  for (const bool runs : {false, true}) {
    if (runs) run();
    for (const JobEnd& stranger : strangers) {
      for (const JobBody& body : bodies) {
        const JobActions out = hear(body, stranger);
        EXPECT_TRUE(out.empty()) << "body " << body.index() << " of server " << stranger.server;
      }
    }
  }
  EXPECT_TRUE(hear(Hold{0, "an agent is no leader", std::nullopt}, kTwo).empty());
  EXPECT_EQ(agent_.phase(), JobAgent::Phase::running);
  EXPECT_TRUE(ordered<command::Halt>(hear(Unknown{}, kTwo)));
}

TEST_F(JobAgentTest, IgnoresACutThatHasNotItsLanes) {
  hold();
  EXPECT_FALSE(ordered<command::Reset>(hear(Reset{1, {{4, 4}, {5, 5}, 3, "x"}})));
  EXPECT_FALSE(ordered<command::Reset>(hear(Reset{1, {{}, {}, 3, "x"}})));
  EXPECT_TRUE(ordered<command::Reset>(hear(Reset{1, {{4}, {5}, 3, "x"}})));
}

TEST_F(JobAgentTest, RepeatsItsJoinUntilTheLeaderAnswers) {
  EXPECT_EQ(sent<Join>(wait(milliseconds(0)), 0).size(), 1u);
  EXPECT_EQ(sent<Join>(wait(timing_.repeat), 0).size(), 1u);
  EXPECT_TRUE(wait(milliseconds(1)).empty());
  hear(Pending{"server [2]"});
  EXPECT_EQ(agent_.missing(), "server [2]");
  wait(timing_.repeat);
  EXPECT_TRUE(wait(timing_.repeat).empty()) << "other trainers may take long";
  EXPECT_EQ(sent<Join>(wait(timing_.ping), 0).size(), 1u);
}

// Where links lose much, one answer in a while would not do to show that the leader is there.
TEST_F(JobAgentTest, RepeatsItsJoinSoonAlsoWhereALaterAnswerIsLost) {
  const auto answer = [this] { hear(Pending{"server [2]"}); };
  wait(milliseconds(0));
  answer();
  for (int ping = 0; ping < 3; ++ping) {
    EXPECT_TRUE(wait(timing_.ping - milliseconds(1)).empty());
    EXPECT_EQ(sent<Join>(wait(milliseconds(1)), 0).size(), 1u);
    EXPECT_EQ(sent<Join>(wait(timing_.repeat), 0).size(), 1u) << "nothing was heard";
    EXPECT_EQ(sent<Join>(wait(timing_.repeat), 0).size(), 1u);
    answer();
  }
}

TEST_F(JobAgentTest, NamesTheLeadersServerWhenItNeverAnswers) {
  const auto ended = told<notice::Ended>(wait(timing_.phase));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->why, "the daemon on server [0] does not answer");
  EXPECT_TRUE(agent_.over());
  EXPECT_FALSE(agent_.deadline());
}

TEST_F(JobAgentTest, PassesOnARefusal) {
  EXPECT_EQ(told<notice::Refused>(hear(Refused{"no"}))->text, "no");
  EXPECT_TRUE(agent_.over());
}

TEST_F(JobAgentTest, IsArmedOnlyWhenItsEnginesAre) {
  const JobActions out = prepare();
  EXPECT_TRUE(ordered<command::Prepare>(out));
  EXPECT_EQ(told<notice::Joined>(out)->rank, 1u);
  EXPECT_TRUE(prepare().empty()) << "asked again while the engines are attached";
  EXPECT_EQ(sent<Armed>(happen(event::EnginesArmed{}), 0).size(), 1u);
  EXPECT_EQ(sent<Armed>(prepare(), 0).size(), 1u) << "the answer was lost";
}

TEST_F(JobAgentTest, StartsOnceAndAnswersEachTime) {
  prepare();
  EXPECT_TRUE(hear(Start{0}).empty()) << "the engines are not armed";
  happen(event::EnginesArmed{});
  EXPECT_TRUE(ordered<command::Start>(hear(Start{0})));
  const JobActions again = hear(Start{0});
  EXPECT_FALSE(ordered<command::Start>(again));
  EXPECT_EQ(sent<Started>(again, 0).size(), 1u);
  EXPECT_TRUE(hear(Start{1}).empty()) << "an epoch to come";
}

TEST_F(JobAgentTest, TellsTheFirstDisagreementOfALaneUntilItIsHeld) {
  run();
  EXPECT_EQ(sent<Disagree>(happen(event::Disagreed{0, {0, 9, 3, "x"}}), 0).size(), 1u);
  EXPECT_TRUE(happen(event::Disagreed{0, {0, 10, 3, "x"}}).empty());
  EXPECT_EQ(sent<Disagree>(happen(event::Disagreed{0, {0, 8, 3, "x"}}), 0).size(), 1u);
  EXPECT_TRUE(happen(event::Disagreed{1, {0, 1, 3, "x"}}).empty()) << "of another epoch";
  EXPECT_EQ(first<Disagree>(wait(timing_.ping), 0).what.collective, 8u);
  hear(hold_in(0));
  const auto held = sent<Held>(happen(event::EnginesHeld{{9}, {7}, {}, {}}), 0);
  ASSERT_EQ(held.size(), 1u);
  ASSERT_EQ(held[0].disagreements.size(), 1u);
  EXPECT_EQ(held[0].disagreements[0].collective, 8u);
}

TEST_F(JobAgentTest, ReportsItsCountsEachTimeItIsAskedAndEachTimeTheyGrow) {
  run();
  EXPECT_TRUE(hear(hold_in(1)).empty());
  EXPECT_TRUE(ordered<command::Hold>(hear(hold_in(0))));
  EXPECT_TRUE(hear(hold_in(0)).empty()) << "the engines do not hold yet";
  EXPECT_EQ(first<Held>(happen(event::EnginesHeld{{5}, {3}, {}, {}}), 0).completed, LaneNumbers{3});
  EXPECT_EQ(first<Held>(happen(event::EnginesHeld{{5}, {4}, {}, {}}), 0).completed, LaneNumbers{4});
  EXPECT_EQ(first<Held>(hear(hold_in(0)), 0).completed, LaneNumbers{4});
}

TEST_F(JobAgentTest, TellsAgainAndAgainWhatHasPassedWhileItIsHeld) {
  hold();
  EXPECT_FALSE(ordered<command::Hold>(wait(timing_.ping - milliseconds(1))));
  EXPECT_TRUE(ordered<command::Hold>(wait(milliseconds(1))));
  event::EnginesHeld counts{{5}, {4}, {}, {}};
  counts.segments = 9;
  EXPECT_EQ(first<Held>(happen(counts), 0).segments, 9u);
  EXPECT_TRUE(ordered<command::Hold>(wait(timing_.ping)));
}

TEST_F(JobAgentTest, ResetsOnceAndIsArmedInTheNewEpoch) {
  hold();
  EXPECT_TRUE(hear(Reset{2, {{4}, {5}, 3, "x"}}).empty()) << "not the next epoch";
  const JobActions out = hear(Reset{1, {{4}, {5}, 3, "x"}});
  EXPECT_TRUE(ordered<command::Reset>(out));
  EXPECT_EQ(told<notice::Failed>(out)->cut.failed, LaneNumbers{5});
  EXPECT_TRUE(hear(Reset{1, {{4}, {5}, 3, "x"}}).empty()) << "the engines are not armed yet";
  EXPECT_EQ(first<Armed>(happen(event::EnginesArmed{}), 0).epoch, 1u);
  EXPECT_EQ(sent<Armed>(hear(Reset{1, {{4}, {5}, 3, "x"}}), 0).size(), 1u);
  EXPECT_TRUE(hear(hold_in(0)).empty()) << "of the old epoch";
  EXPECT_FALSE(ordered<command::Start>(hear(Start{0})));
  EXPECT_TRUE(ordered<command::Start>(hear(Start{1})));
}

TEST_F(JobAgentTest, SaysWhatWasSubmittedAsTheEarliestThatItIsAskedFor) {
  run();
  const CollectiveName later{0, 7};
  const CollectiveName earlier{0, 3};
  hear(Hold{0, "they disagree", later});
  happen(event::EnginesHeld{{9}, {2}, later, "barrier"});
  EXPECT_TRUE(ordered<command::Hold>(hear(Hold{0, "they disagree", earlier})));
  const Held held = first<Held>(happen(event::EnginesHeld{{9}, {2}, earlier, "broadcast"}), 0);
  EXPECT_EQ(held.asked, earlier);
  EXPECT_EQ(held.submitted, "broadcast");
  EXPECT_FALSE(ordered<command::Hold>(hear(Hold{0, "they disagree", later}))) << "overtaken";
}

TEST_F(JobAgentTest, WaitsOnWithALeaderThatAsksAgain) {
  hold();
  const auto longest = 2 * timing_.phase + timing_.run_on;
  for (int again = 0; again < 3; ++again) {
    EXPECT_FALSE(ordered<command::Halt>(wait(longest - std::chrono::milliseconds(1))));
    hear(Hold{0, "they disagree", {}});
  }
  EXPECT_TRUE(ordered<command::Halt>(wait(longest)));
}

TEST_F(JobAgentTest, GivesUpALeaderThatDoesNotGoOn) {
  hold();
  const JobActions out = wait(2 * timing_.phase + timing_.run_on);
  EXPECT_TRUE(ordered<command::Halt>(out));
  EXPECT_EQ(first<Abort>(out, 2).why, "the daemon on server [0] does not go on with the job");
}

TEST_F(JobAgentTest, LearnsWithTheOtherSurvivorHowFarAllCame) {
  run();
  JobActions out;
  agent_.on_server_gone(0, "nothing is heard of server 0", {now_, out});
  EXPECT_TRUE(ordered<command::Halt>(out));
  happen(event::EnginesHalted{{7}});
  EXPECT_FALSE(told<notice::Ended>(hear(Abort{"x", {}, LaneNumbers{6}, {}, false}, kTwo)))
      << "the other still counts server 0";
  const auto ended = told<notice::Ended>(hear(Abort{"x", {0}, LaneNumbers{6}, {}, false}, kTwo));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->why, "nothing is heard of server 0");
  EXPECT_EQ(ended->common, LaneNumbers{6});
  EXPECT_FALSE(agent_.over()) << "the other may not know yet";
  hear(Abort{"x", {0}, LaneNumbers{6}, LaneNumbers{6}, false}, kTwo);
  EXPECT_TRUE(agent_.over());
}

TEST_F(JobAgentTest, DoesNotListenToADecisionAboutLanesThatTheJobDoesNotHave) {
  run();
  JobActions out;
  agent_.on_server_gone(0, "nothing is heard of server 0", {now_, out});
  happen(event::EnginesHalted{{7}});
  for (const LaneNumbers& common : {LaneNumbers{}, LaneNumbers{6, 6}}) {
    const Abort wrong{"x", {0}, LaneNumbers{6}, common, false};
    EXPECT_FALSE(told<notice::Ended>(hear(wrong, kTwo)));
  }
  const auto ended = told<notice::Ended>(hear(Abort{"x", {0}, LaneNumbers{6}, {}, false}, kTwo));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->common, LaneNumbers{6});
}

TEST_F(JobAgentTest, AbortsWhenItsTrainerDoes) {
  run();
  const JobActions out = happen(event::TrainerAborted{"the trainer on server [1] aborted"});
  EXPECT_EQ(first<Abort>(out, 0).why, "the trainer on server [1] aborted");
  EXPECT_FALSE(told<notice::Ended>(out)) << "it knows";
}

TEST_F(JobAgentTest, RepeatsALeaveUntilTheLeaderActs) {
  run();
  EXPECT_EQ(sent<Leave>(happen(event::TrainerLeft{"left"}), 0).size(), 1u);
  EXPECT_EQ(sent<Leave>(wait(timing_.ping), 0).size(), 1u);
  EXPECT_EQ(sent<Leave>(wait(timing_.repeat), 0).size(), 1u);
  hear(hold_in(0));
  EXPECT_TRUE(sent<Leave>(wait(timing_.repeat), 0).empty());
}

TEST_F(JobAgentTest, NotesDeparturesOnceAndInTheirOrder) {
  run();
  happen(event::TrainerLeft{"left", false, false, 0, LaneNumbers{4}});
  const Left own{0, {{1, 0, "left", {4}}}};
  const JobActions out = hear(own);
  EXPECT_TRUE(ordered<command::Note>(out));
  EXPECT_EQ(first<Noted>(out, 0).departures, 1u);
  EXPECT_TRUE(sent<Leave>(wait(timing_.repeat), 0).empty()) << "the leader knows it";
  EXPECT_FALSE(ordered<command::Note>(hear(own)));
  EXPECT_EQ(first<Noted>(hear(own), 0).departures, 1u) << "the first answer was lost";
  EXPECT_TRUE(hear(Left{2, {{2, 0, "left", {4}}}}).empty()) << "one is missing before it";
  const JobActions strange =
      hear(Left{1, {{7, 0, "left", {4}}, {2, 1, "x", {4}}, {2, 0, "x", {}}}});
  EXPECT_FALSE(ordered<command::Note>(strange)) << "none of its trainers, or lanes";
  EXPECT_EQ(first<Noted>(strange, 0).departures, 4u);
}

TEST_F(JobAgentTest, TellsWhatATrainerHadSubmittedWhenTheJobRuns) {
  wait(milliseconds(0));
  const event::TrainerLeft early{"left", false, false, 0, std::nullopt, false};
  EXPECT_EQ(sent<Leave>(happen(early), 0).size(), 1u);
  run();
  EXPECT_TRUE(sent<Leave>(wait(timing_.repeat), 0).empty());
  const JobActions out = happen(event::TrainerLeft{"left", false, false, 0, LaneNumbers{2}});
  EXPECT_EQ(first<Leave>(out, 0).submitted, LaneNumbers{2});
}

TEST_F(JobAgentTest, EndsWhenTheLeadersDaemonKnowsNoSuchJob) {
  run();
  EXPECT_EQ(sent<Started>(wait(timing_.ping), 0).size(), 1u) << "its sign of life";
  EXPECT_TRUE(ordered<command::Halt>(hear(Unknown{})));
}

TEST(AbortExchange, AdoptsADecisionAndKeepsIt) {
  AbortExchange exchange(0, {0, 1, 2});
  exchange.set_completed({9});
  exchange.on_abort(1, {"", {2}, LaneNumbers{8}, LaneNumbers{5}, false});
  EXPECT_EQ(exchange.common(), LaneNumbers{5});
  exchange.decide({1});
  EXPECT_EQ(exchange.common(), LaneNumbers{5});
  EXPECT_EQ(exchange.gone(), AbortExchange::Servers{2});
  EXPECT_TRUE(exchange.undecided().empty());
}

TEST(AbortExchange, DoesNotListenToAServerItHasGivenUp) {
  AbortExchange exchange(0, {0, 1, 2});
  exchange.give_up(1);
  exchange.on_abort(1, {"", {}, LaneNumbers{8}, LaneNumbers{5}, false});
  EXPECT_FALSE(exchange.common());
}

TEST(AbortExchange, GivesUpAServerThatHasGivenItUpOrTakesNoPart) {
  AbortExchange exchange(0, {0, 1, 2, 3});
  exchange.on_abort(1, {"", {0}, LaneNumbers{8}, {}, false});
  exchange.on_abort(2, {"", {}, LaneNumbers{8}, {}, true});
  EXPECT_EQ(exchange.gone(), (AbortExchange::Servers{1, 2}));
  EXPECT_EQ(exchange.silent(), AbortExchange::Servers{3});
}

TEST(AbortExchange, IgnoresAnOlderSetThatComesLate) {
  AbortExchange exchange(0, {0, 1, 2});
  exchange.set_completed({9});
  exchange.give_up(2);
  exchange.on_abort(1, {"", {}, std::nullopt, {}, false});
  EXPECT_FALSE(exchange.over());
  exchange.on_abort(1, {"", {2}, LaneNumbers{8}, {}, false});
  EXPECT_EQ(exchange.common(), LaneNumbers{8});
}

TEST(AbortExchange, LeavesTheDecisionOpenWhenItWithdraws) {
  AbortExchange exchange(0, {0, 1});
  exchange.withdraw();
  exchange.set_completed({9});
  exchange.on_abort(1, {"", {}, LaneNumbers{8}, LaneNumbers{8}, false});
  EXPECT_TRUE(exchange.over());
  EXPECT_FALSE(exchange.common());
  EXPECT_TRUE(exchange.message("").withdrawn);
}

}  // namespace
}  // namespace gradcube::control
