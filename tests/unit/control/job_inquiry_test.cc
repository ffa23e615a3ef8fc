#include "tests/unit/control/job_agent_fixture.h"

namespace gradcube::control {
namespace {

constexpr CollectiveName kThird{0, 3};

class JobInquiryTest : public JobAgentTest {};

std::optional<notice::Report> report(const JobActions& actions) {
  return told<notice::Report>(actions);
}

unsigned counts_ordered(const JobActions& actions) {
  unsigned orders = 0;
  for (const JobAction& action : actions) {
    const auto* order = std::get_if<ToEngines>(&action);
    if (order != nullptr && std::holds_alternative<command::Count>(order->command)) ++orders;
  }
  return orders;
}

TEST_F(JobInquiryTest, ReportsWhenAllHaveAnswered) {
  run();
  const JobActions out = happen(event::Asked{1, kThird});
  EXPECT_EQ(sent<Ask>(out, kZero).size(), 1u);
  EXPECT_EQ(sent<Ask>(out, kTwo).size(), 1u);
  EXPECT_EQ(counts_ordered(out), 1u);
  EXPECT_FALSE(report(happen(event::Counted{0, 0, {3}, {2}})));
  EXPECT_FALSE(report(hear(Counts{1, 70, {2}, {2}}, kZero)));
  EXPECT_FALSE(report(hear(Counts{9, 72, {9}, {9}}, kTwo))) << "of another inquiry";
  const auto told = report(hear(Counts{1, 72, {3}, {}}, kTwo));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->collective, kThird);
  EXPECT_TRUE(told->missing.empty());
  ASSERT_EQ(told->members.size(), 3u);
  EXPECT_EQ(told->members[0].published, LaneNumbers{2});
  EXPECT_EQ(told->members[1].pid, 71);
  EXPECT_EQ(told->members[1].published, LaneNumbers{3});
  EXPECT_EQ(told->members[2].completed, LaneNumbers{0}) << "one number per lane in any case";
}

TEST_F(JobInquiryTest, AsksAgainAndReportsWhatIsKnownAtTheDeadline) {
  run();
  happen(event::Asked{1, kThird});
  happen(event::Counted{0, 0, {3}, {2}});
  hear(Counts{1, 70, {2}, {2}}, kZero);
  EXPECT_EQ(agent_.deadline(), timing_.repeat);
  const JobActions again = wait(timing_.repeat);
  EXPECT_EQ(sent<Ask>(again, kTwo).size(), 1u);
  EXPECT_TRUE(sent<Ask>(again, kZero).empty()) << "it has answered";
  const auto told = report(wait(timing_.answer - timing_.repeat));
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->members[0].answered);
  EXPECT_FALSE(told->members[2].answered);
  EXPECT_FALSE(report(wait(timing_.answer))) << "once";
}

TEST_F(JobInquiryTest, AnswersOnlyTheNewest) {
  run();
  happen(event::Asked{1, kThird});
  happen(event::Asked{2, kThird});
  happen(event::Counted{0, 0, {3}, {2}});
  hear(Counts{1, 70, {2}, {2}}, kZero);
  hear(Counts{1, 72, {2}, {2}}, kTwo);
  hear(Counts{2, 70, {2}, {2}}, kZero);
  const auto told = report(hear(Counts{2, 72, {2}, {2}}, kTwo));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->inquiry, 2u);
}

TEST_F(JobInquiryTest, TellsOthersHowFarItsTrainerIs) {
  run();
  EXPECT_EQ(counts_ordered(hear(Ask{5}, kZero)), 1u);
  EXPECT_EQ(counts_ordered(hear(Ask{8}, kTwo)), 0u) << "it is counting already";
  hear(Ask{0}, kLeader);
  const JobActions answers = happen(event::Counted{0, 0, {4}, {3}});
  EXPECT_EQ(sent<Counts>(answers, kZero).size(), 1u);
  EXPECT_EQ(sent<Counts>(answers, kLeader).size(), 1u) << "on the same server";
  ASSERT_EQ(sent<Counts>(answers, kTwo).size(), 1u);
  const Counts counts = sent<Counts>(answers, kTwo)[0];
  EXPECT_EQ(counts.inquiry, 8u);
  EXPECT_EQ(counts.pid, 71);
  EXPECT_EQ(counts.published, LaneNumbers{4});
}

TEST_F(JobInquiryTest, SaysThatTheJobIsStoppingWhileItIs) {
  run();
  happen(event::Asked{1, kThird});
  const auto first = report(hear(Hold{0, "a trainer left", std::nullopt}, kLeader));
  ASSERT_TRUE(first) << "what others count from now on says nothing about who waits for whom";
  EXPECT_EQ(first->missing, "job \"mnist\" is stopping: a trainer left");
  happen(event::EnginesHeld{{3}, {2}, {}, ""});
  const auto second = report(happen(event::Asked{2, kThird}));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->missing, first->missing);
  hear(Reset{1, {{2}, {3}, 3, "x"}}, kLeader);
  EXPECT_TRUE(report(happen(event::Asked{3, kThird}))) << "not armed again yet";
  happen(event::EnginesArmed{});
  EXPECT_FALSE(report(happen(event::Asked{4, kThird})));
}

TEST_F(JobInquiryTest, AsksTheLeaderWhoIsMissingWhileTheJobGathers) {
  hear(Pending{"x"}, kLeader);
  EXPECT_EQ(sent<Join>(happen(event::Asked{1, kThird}), 0).size(), 1u);
  const auto told = report(hear(Pending{"server [2]"}, kLeader));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->missing, "server [2]");
  EXPECT_TRUE(told->members.empty());
}

TEST_F(JobInquiryTest, NamesALeaderThatHasNotAnsweredByTheDeadline) {
  happen(event::Asked{1, kThird});
  const auto told = report(wait(timing_.answer));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->missing, "the daemon on server [0] has not answered yet");
}

TEST_F(JobInquiryTest, SaysThatTheJobIsEnding) {
  run();
  happen(event::Asked{1, kThird});
  const auto told = report(hear(Abort{"it broke", {}, {}, {}, false}, kTwo));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->missing, "job \"mnist\" is ending: it broke");
  EXPECT_EQ(report(happen(event::Asked{2, kThird}))->missing, told->missing);
  EXPECT_EQ(sent<Abort>(hear(Ask{5}, kTwo), 2).size(), 1u) << "the other may not know yet";
}

}  // namespace
}  // namespace gradcube::control
