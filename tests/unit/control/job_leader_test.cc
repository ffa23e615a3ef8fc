// How a leader gathers a job, sets it up and ends.

#include "tests/unit/control/job_leader_fixture.h"

namespace gradcube::control {
namespace {

TEST_F(JobLeaderTest, TellsWhoIsMissingAndPreparesWhenNobodyIs) {
  EXPECT_EQ(first<Pending>(hear(2, join_of())).missing,
            "2 of 3 trainers have not joined job \"mnist\": servers [0], [1]");
  hear(0, join_of(1400));
  const JobActions out = hear(1, join_of());
  EXPECT_EQ(asked<Prepare>(out), (Servers{0, 1, 2}));
  const JobDescriptor job = first<Prepare>(out).job;
  EXPECT_EQ(job.transport.segment_bytes, 1400u) << "the least";
  EXPECT_EQ(job.members[2].incarnation, 12u);
}

TEST_F(JobLeaderTest, GathersAllTrainersOfEveryServer) {
  JobOptions options = options_of();
  options.trainers = 3;
  leader_ = JobLeader(kSelf, 77, "mnist", options, kSpace, timing_);
  Join join = join_of();
  join.options = options;
  hear(0, join);
  join.trainers = 3;
  hear(1, join);
  hear(2, join);
  EXPECT_EQ(leader_.missing(),
            "2 of 9 trainers have not joined job \"mnist\": server [0] (2 of 3)");
  join.trainers = 2;
  EXPECT_TRUE(asked<Prepare>(hear(0, join)).empty());
  join.trainers = 1;
  EXPECT_EQ(first<Pending>(hear(0, join)).missing,
            "1 of 9 trainers has not joined job \"mnist\": server [0] (1 of 3)")
      << "an older message";
  join.trainers = 3;
  EXPECT_EQ(asked<Prepare>(hear(0, join)), (Servers{0, 1, 2}));
}

TEST_F(JobLeaderTest, RefusesOtherOptionsAndMixedRanks) {
  hear(0, join_of());
  Join other = join_of();
  other.options.weight = 2;
  EXPECT_NE(first<Refused>(hear(1, other)).text.find("weight 2"), std::string::npos);
  other = join_of();
  other.rank = 1;
  EXPECT_NE(first<Refused>(hear(1, other)).text.find("from all trainers"), std::string::npos);
}

TEST_F(JobLeaderTest, ForgetsATrainerThatItsDaemonDoesNotKnow) {
  hear(1, join_of());
  EXPECT_EQ(asked<Pending>(wait(timing_.ping)), Servers{1}) << "asks whether it is still there";
  hear(1, Unknown{});
  EXPECT_TRUE(leader_.over());
}

TEST_F(JobLeaderTest, StartsOnlyWhenAllAreArmed) {
  all(join_of());
  hear(0, Armed{0});
  hear(0, Armed{0});
  EXPECT_TRUE(asked<Start>(hear(1, Armed{0})).empty());
  EXPECT_EQ(asked<Prepare>(wait(timing_.repeat)), Servers{2}) << "asks who has not answered";
  EXPECT_TRUE(asked<Start>(hear(2, Armed{1})).empty()) << "another epoch";
  EXPECT_TRUE(asked<Start>(hear(JobEnd{2, 11, 5}, Armed{0})).empty()) << "another incarnation";
  EXPECT_EQ(asked<Start>(hear(2, Armed{0})), (Servers{0, 1, 2}));
}

TEST_F(JobLeaderTest, NamesTheServerThatIsSilent) {
  all(join_of());
  hear(0, Armed{0});
  hear(2, Armed{0});
  const JobActions out = wait(timing_.phase);
  EXPECT_EQ(asked<Abort>(out), (Servers{0, 1, 2}));
  EXPECT_EQ(first<Abort>(out).why, "the daemon on server [1] does not answer for job \"mnist\"");
  wait(timing_.phase);
  EXPECT_TRUE(leader_.over());
}

// As where one process prepares the engines of many servers, one after the other.
TEST_F(JobLeaderTest, WaitsForTheNextEnginesAndNotForAllInTheTimeOfOne) {
  all(join_of());
  hear(0, Armed{0});
  wait(timing_.phase - milliseconds(1));
  hear(2, Armed{0});
  wait(timing_.phase - milliseconds(1));
  EXPECT_EQ(leader_.phase(), Phase::preparing);
  hear(2, Armed{0});
  EXPECT_EQ(asked<Abort>(wait(milliseconds(1))), (Servers{0, 1, 2})) << "that was no other one";
}

TEST_F(JobLeaderTest, NamesARefusedTrainerUntilOneThatFitsComes) {
  hear(1, join_of());
  Join other = join_of();
  other.options.weight = 2;
  hear(2, other);
  EXPECT_NE(leader_.missing().find("server [2] (pid 7) was refused: job \"mnist\" has weight 1"),
            std::string::npos)
      << leader_.missing();
  hear(2, join_of());
  wait(timing_.phase);
  hear(1, join_of());
  wait(timing_.phase + milliseconds(1));
  EXPECT_EQ(leader_.missing(), "2 of 3 trainers have not joined job \"mnist\": servers [0], [2]")
      << "nothing was heard of it any more";
}

TEST_F(JobLeaderTest, LetsATrainerThatJoinsAnewWaitForTheEndOfTheOldJob) {
  run();
  const JobEnd anew{1, 11, 6};
  const JobActions out = hear(anew, join_of());
  ASSERT_EQ(asked<Pending>(out), Servers{1});
  EXPECT_EQ(std::get<JobMessage>(out[0]).job, protocol::kNoJob) << "it is no member";
  EXPECT_EQ(first<Pending>(out).missing,
            "the old job \"mnist\" is ending: its trainer on server [1] has gone");
  EXPECT_EQ(leader_.phase(), Phase::running);
  hear(1, Leave{"the trainer left"});
  Join other = join_of();
  other.options.weight = 2;
  EXPECT_EQ(first<Pending>(hear(JobEnd{2, 12, 6}, other)).missing,
            "the old job \"mnist\" is ending: its trainer on server [2] has gone");
}

TEST_F(JobLeaderTest, TellsWhichServersAJobOnSomeOfThemIsFor) {
  JobLeader leader(kSelf, 78, "part", options_of({0, 2}), kSpace, timing_);
  EXPECT_EQ(leader.missing(),
            "2 of 2 trainers have not joined job \"part\": servers [0], [2]; the job is for 2 "
            "servers [0] [2]");
}

TEST_F(JobLeaderTest, LeavesOutATrainerOfWhichNothingIsHeardWhileItGathers) {
  hear(1, join_of());
  wait(timing_.phase);
  hear(2, join_of());
  wait(timing_.phase + milliseconds(1));
  EXPECT_EQ(leader_.missing(), "2 of 3 trainers have not joined job \"mnist\": servers [0], [1]");
  wait(timing_.phase);
  EXPECT_TRUE(leader_.over());
}

TEST_F(JobLeaderTest, IsOverWhenAllHaveHeardOfTheEnd) {
  run();
  JobActions out;
  leader_.on_server_gone(2, "server 2 is gone", {now_, out});
  EXPECT_EQ(first<Abort>(out).gone, Servers{2});
  hear(0, Abort{});
  EXPECT_EQ(leader_.phase(), Phase::ending);
  hear(1, Abort{});
  EXPECT_TRUE(leader_.over());
  EXPECT_FALSE(leader_.deadline());
}

// As where another server has ended the job, and its words were lost on a link that was cut.
TEST_F(JobLeaderTest, EndsWhereADaemonOfWhichNothingIsHeardHasNoSuchJobAnyMore) {
  run();
  const Instant ping = timing_.ping;
  for (int i = 0; i < 4; ++i) {
    all(Started{0});
    EXPECT_EQ(asked<control::Start>(wait(ping)), Servers{}) << "all ping";
  }
  for (int i = 0; i < 4; ++i) {
    hear(0, Started{0});
    hear(2, Started{0});
    EXPECT_EQ(asked<control::Start>(wait(ping)), i < 3 ? Servers{} : Servers{1});
  }
  EXPECT_NE(first<Abort>(hear(1, Unknown{})).why.find("has no trainer of job"), std::string::npos);
}

}  // namespace
}  // namespace gradcube::control
