// What the daemon says about its jobs, from what its nodes hand in.

#include "dataplane/daemon/node/job_report.h"

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>

#include "control/plan/auto_plans.h"

namespace gradcube::dataplane {
namespace {

using control::Instant;
using control::LaneNumbers;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Servers = std::vector<bcube::ServerId>;

constexpr protocol::JobId kJob = 7;
constexpr Instant kReportStart = seconds(100);

control::JobOptions options_of(std::size_t lanes, const Servers& members) {
  control::JobOptions options;
  options.lanes.assign(lanes, {"bml", 0});
  options.members = members;
  return options;
}

// A running trainer of a job with as many lanes as there are counts.
MemberFacts trainer(bcube::ServerId server, const LaneNumbers& published,
                    const LaneNumbers& completed) {
  MemberFacts facts;
  facts.name = "mnist";
  facts.id = kJob;
  facts.state = JobState::running;
  facts.options = options_of(published.size(), {0, 1, 2});
  facts.server = server;
  facts.pid = 100 + server;
  facts.counts = {published, completed};
  return facts;
}

MemberFacts in_state(JobState state, MemberFacts facts) {
  facts.state = state;
  return facts;
}

// The one job that these trainers make, at a process that runs servers 0 to 2.
JobFacts only_job(const std::vector<MemberFacts>& trainers, const Servers& servers = {0, 1, 2}) {
  const std::vector<JobFacts> jobs = job_facts(trainers, servers);
  EXPECT_EQ(jobs.size(), 1u);
  return jobs.empty() ? JobFacts{} : jobs.front();
}

TEST(JobFacts, KeepJobsOfOneNameAndSeveralOwnersApart) {
  MemberFacts alices = in_state(JobState::gathering, trainer(0, {0}, {0}));
  MemberFacts bobs = in_state(JobState::gathering, trainer(0, {0}, {0}));
  alices.id = bobs.id = protocol::kNoJob;
  alices.owner = control::JobOwner::of_user(1001);
  bobs.owner = control::JobOwner::of_user(1002);
  EXPECT_EQ(job_facts({alices, bobs}, {0, 1, 2}).size(), 2u);
}

TEST(JobFacts, AreNoneWithoutTrainers) { EXPECT_TRUE(job_facts({}, {0, 1, 2}).empty()); }

TEST(JobFacts, GroupTrainersByJobAndOrderThemByServer) {
  MemberFacts other = trainer(1, {0}, {0});
  other.name = "other";
  other.id = 8;
  const auto jobs = job_facts(
      {trainer(2, {0}, {0}), other, trainer(0, {0}, {0}), trainer(1, {0}, {0})}, {0, 1, 2});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].name, "mnist");
  EXPECT_EQ(jobs[0].id, kJob);
  ASSERT_EQ(jobs[0].trainers.size(), 3u);
  for (bcube::ServerId server = 0; server < 3; ++server) {
    EXPECT_EQ(jobs[0].trainers[server].server, server);
    EXPECT_EQ(jobs[0].trainers[server].pid, 100 + server);
  }
  EXPECT_EQ(jobs[1].name, "other");
  EXPECT_EQ(jobs[1].trainers.size(), 1u);
}

TEST(JobFacts, KeepAnEndedJobApartFromTheNextOfItsNameAndShowItLast) {
  MemberFacts old = in_state(JobState::aborted, trainer(0, {3}, {3}));
  old.id = 5;
  const auto jobs = job_facts({old, trainer(1, {0}, {0})}, {0, 1, 2});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].id, kJob);
  EXPECT_EQ(jobs[1].id, 5u);
  EXPECT_EQ(jobs[1].state, JobState::aborted);
}

// Of trainers that no leader has answered yet it is not known whether they are of one job.
TEST(JobFacts, KeepTrainersApartThatAskForDifferentOptionsBeforeTheirLeaderHasAnswered) {
  MemberFacts one_lane = in_state(JobState::gathering, trainer(0, {4}, {1}));
  MemberFacts two_lanes = in_state(JobState::gathering, trainer(1, {0, 5}, {0, 2}));
  one_lane.id = two_lanes.id = protocol::kNoJob;
  const auto jobs = job_facts({one_lane, two_lanes}, {0, 1, 2});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].options.lanes.size(), 1u);
  EXPECT_EQ(jobs[0].collectives, 1u);
  EXPECT_EQ(jobs[1].options.lanes.size(), 2u);
  EXPECT_EQ(jobs[1].collectives, 2u);
}

TEST(JobFacts, TakeTheMostAdvancedStateAndEpochOfTheTrainers) {
  const auto state = [](JobState first, JobState second) {
    return only_job({in_state(first, trainer(0, {0}, {0})), in_state(second, trainer(1, {0}, {0}))})
        .state;
  };
  EXPECT_EQ(state(JobState::gathering, JobState::gathering), JobState::gathering);
  EXPECT_EQ(state(JobState::running, JobState::gathering), JobState::running);
  EXPECT_EQ(state(JobState::running, JobState::stopping), JobState::stopping);
  EXPECT_EQ(state(JobState::stopping, JobState::aborted), JobState::aborted);
  MemberFacts later = trainer(1, {0}, {0});
  later.epoch = 3;
  EXPECT_EQ(only_job({later, trainer(0, {0}, {0})}).epoch, 3u);
  EXPECT_EQ(state_name(JobState::gathering), "gathering");
  EXPECT_EQ(state_name(JobState::running), "running");
  EXPECT_EQ(state_name(JobState::stopping), "stopping");
  EXPECT_EQ(state_name(JobState::aborted), "aborted");
}

TEST(JobFacts, NameWhomAGatheringJobWaitsFor) {
  const JobFacts job = only_job({in_state(JobState::gathering, trainer(1, {2}, {0}))});
  EXPECT_EQ(job.waiting_for, (Servers{0, 2}));
}

TEST(JobFacts, NameOnlyServersOfThisProcessWhileAJobGathers) {
  const auto gathering = in_state(JobState::gathering, trainer(1, {0}, {0}));
  EXPECT_EQ(only_job({gathering}, {1, 2}).waiting_for, Servers{2});
  EXPECT_EQ(only_job({gathering}, {1}).waiting_for, Servers{});
}

TEST(JobFacts, NameWhoHasNotSubmittedTheOldestOpenCollectiveOfALane) {
  EXPECT_EQ(
      only_job({trainer(0, {3}, {2}), trainer(1, {2}, {2}), trainer(2, {5}, {2})}).waiting_for,
      Servers{1});
  // All have submitted it, so the engines are at work.
  EXPECT_EQ(
      only_job({trainer(0, {3}, {2}), trainer(1, {3}, {3}), trainer(2, {5}, {2})}).waiting_for,
      Servers{});
  // Nobody has submitted anything more.
  EXPECT_EQ(only_job({trainer(0, {2}, {2}), trainer(1, {2}, {2})}).waiting_for, Servers{});
}

TEST(JobFacts, NameTheLateOnesOfAllLanesOnceAndAscending) {
  const JobFacts job = only_job({trainer(0, {1, 0, 0}, {0, 0, 0}), trainer(1, {1, 1, 1}, {0, 0, 0}),
                                 trainer(2, {0, 1, 1}, {0, 0, 0})});
  EXPECT_EQ(job.waiting_for, (Servers{0, 2}));
}

TEST(JobFacts, SayThatAJobThatStopsOrIsAbortedWaitsForNobody) {
  for (const JobState state : {JobState::stopping, JobState::aborted}) {
    const JobFacts job = only_job({in_state(state, trainer(0, {3}, {2})), trainer(1, {2}, {2})});
    EXPECT_TRUE(job.waiting_for.empty());
  }
}

TEST(JobFacts, SayWhyTheJobIsInItsState) {
  MemberFacts stopping = in_state(JobState::stopping, trainer(0, {3}, {2}));
  stopping.why = "the trainers disagree";
  EXPECT_EQ(only_job({stopping, trainer(1, {2}, {2})}).why, "the trainers disagree");
  MemberFacts aborted = in_state(JobState::aborted, trainer(1, {3}, {2}));
  aborted.why = "a trainer died";
  EXPECT_EQ(only_job({stopping, aborted}).why, "a trainer died");
  EXPECT_EQ(only_job({aborted, stopping}).why, "a trainer died");
}

TEST(JobFacts, CountOverAllLanes) {
  const JobFacts job = only_job({trainer(0, {7, 5}, {6, 3}), trainer(1, {6, 9}, {5, 4})});
  EXPECT_EQ(job.collectives, 5u + 3u) << "completed by both";
  EXPECT_EQ(job.trainers[0].submitted(), 12u);
  EXPECT_EQ(job.trainers[0].completed(), 9u);
  EXPECT_EQ(job.trainers[1].submitted(), 15u);
  EXPECT_EQ(job.trainers[1].completed(), 9u);
}

// Wait times ---------------------------------------------------------------

JobFacts waiting(std::uint64_t collectives, JobState state = JobState::running) {
  JobFacts job;
  job.name = "mnist";
  job.id = kJob;
  job.state = state;
  job.collectives = collectives;
  job.waiting_for = {1};
  return job;
}

TEST(WaitTimes, CountFromWhenTheWaitWasFirstNoted) {
  WaitTimes waits;
  EXPECT_EQ(waits.milliseconds(waiting(3), kReportStart), 0) << "it is new";
  waits.note({waiting(3)}, kReportStart);
  waits.note({waiting(3)}, kReportStart + milliseconds(100));
  EXPECT_EQ(waits.milliseconds(waiting(3), kReportStart + milliseconds(250)), 250);
}

TEST(WaitTimes, BeginAnewWhenACollectiveHasEnded) {
  WaitTimes waits;
  waits.note({waiting(3)}, kReportStart);
  EXPECT_EQ(waits.milliseconds(waiting(4), kReportStart + seconds(1)), 0);
  waits.note({waiting(4)}, kReportStart + seconds(1));
  EXPECT_EQ(waits.milliseconds(waiting(4), kReportStart + seconds(3)), 2'000);
}

TEST(WaitTimes, BeginAnewWhenAllHaveJoined) {
  WaitTimes waits;
  waits.note({waiting(0, JobState::gathering)}, kReportStart);
  EXPECT_EQ(waits.milliseconds(waiting(0), kReportStart + seconds(1)), 0);
  EXPECT_EQ(waits.milliseconds(waiting(0, JobState::gathering), kReportStart + seconds(1)), 1'000);
}

TEST(WaitTimes, AreForgottenWhenNobodyWaits) {
  WaitTimes waits;
  JobFacts idle = waiting(3);
  idle.waiting_for.clear();
  waits.note({waiting(3)}, kReportStart);
  EXPECT_EQ(waits.milliseconds(idle, kReportStart + seconds(1)), 0);
  waits.note({idle}, kReportStart + seconds(1));
  waits.note({waiting(3)}, kReportStart + seconds(2));
  EXPECT_EQ(waits.milliseconds(waiting(3), kReportStart + seconds(3)), 1'000);
}

TEST(WaitTimes, OfJobsThatHaveNoIdYetAreToldApartByTheirNames) {
  WaitTimes waits;
  JobFacts first = waiting(0, JobState::gathering);
  first.id = protocol::kNoJob;
  JobFacts second = first;
  second.name = "other";
  waits.note({first}, kReportStart);
  waits.note({first, second}, kReportStart + seconds(1));
  EXPECT_EQ(waits.milliseconds(first, kReportStart + seconds(2)), 2'000);
  EXPECT_EQ(waits.milliseconds(second, kReportStart + seconds(2)), 1'000);
}

// Sentences ----------------------------------------------------------------

CollectiveRequest request_of(control::CollectiveKind kind) {
  CollectiveRequest request;
  request.kind = kind;
  request.root = 2;
  request.count = 5'003;
  request.dtype = aggregation::DataType::float32;
  request.operation = aggregation::Operation::sum;
  return request;
}

TEST(Describe, SaysWhatATrainerHasSubmitted) {
  using Kind = control::CollectiveKind;
  EXPECT_EQ(describe(std::nullopt), "nothing yet");
  EXPECT_EQ(describe(request_of(Kind::all_reduce)), "all-reduce of 5003 float32 sum");
  EXPECT_EQ(describe(request_of(Kind::reduce_scatter)), "reduce-scatter of 5003 float32 sum");
  EXPECT_EQ(describe(request_of(Kind::all_gather)), "all-gather of 5003 float32");
  EXPECT_EQ(describe(request_of(Kind::broadcast)), "broadcast of 5003 float32 from rank 2");
  EXPECT_EQ(describe(request_of(Kind::reduce)), "reduce of 5003 float32 sum to rank 2");
  EXPECT_EQ(describe(request_of(Kind::barrier)), "barrier");
}

TEST(DescribeCommon, SaysWhatEndedOnAllSurvivors) {
  EXPECT_EQ(describe_common(std::nullopt),
            "; which collectives ended on all of the others could not be found out");
  EXPECT_EQ(describe_common(LaneNumbers{7}),
            "; collective 7 was the last that ended alike on all of the others");
  EXPECT_EQ(
      describe_common(LaneNumbers{7, 0, 2}),
      "; the last collectives that ended alike on all of the others: 7 of lane 0, 0 of lane 1, 2 "
      "of lane 2");
  for (const LaneNumbers& nothing : {LaneNumbers{0}, LaneNumbers{0, 0}, LaneNumbers{}}) {
    EXPECT_EQ(describe_common(nothing), "; no collective ended on all of the others");
  }
}

bcube::AddressSpace small_space() {
  constexpr std::array<unsigned, 2> kRadices{2, 2};
  return bcube::AddressSpace(kRadices);
}

EngineEvent overflow_of(aggregation::DataType type) {
  EngineEvent event;
  event.kind = EngineEvent::Kind::overflow;
  event.server = 3;
  event.overflow = {.lane = 1,
                    .collective = 9,
                    .thread = 4,
                    .step = 2,
                    .dtype = type,
                    .first_element = 100,
                    .elements = 28};
  return event;
}

TEST(DescribeOverflow, NamesTheElementsTheServerAndWhatToDo) {
  const bcube::AddressSpace space = small_space();
  control::JobDescriptor job;
  job.name = "mnist";
  job.options = options_of(2, {0, 1, 2, 3});
  const std::string narrow =
      describe_overflow(job, overflow_of(aggregation::DataType::int32), {}, space);
  EXPECT_EQ(narrow,
            "collective 9 of lane 1 of job \"mnist\": the int32 average overflowed in elements 100 "
            "to 127: a partial sum does not fit in int32 (at server [1,1], thread 4, step 2); "
            "average as int64 or float64, or average smaller values");
  const std::string wide =
      describe_overflow(job, overflow_of(aggregation::DataType::int64), {}, space);
  EXPECT_NE(wide.find("average as float64, or"), std::string::npos) << wide;
  job.options = options_of(1, {0, 1, 2, 3});
  EXPECT_EQ(
      describe_overflow(job, overflow_of(aggregation::DataType::int32), {}, space).find("lane"),
      std::string::npos)
      << "the job has one lane";
}

TEST(DescribePlace, NamesServerThreadAndStep) {
  EngineEvent event;
  event.server = 2;
  event.disagreement.thread = 1;
  event.disagreement.step = 5;
  EXPECT_EQ(describe_place(event, {}, small_space()), "server [1,0], thread 1, step 5");
}

TEST(DescribePlace, NamesThePlanOfALaneThatHasSeveral) {
  const auto topology =
      control::parse_topology("bcube:2,2", "test").with_rates({10'000'000'000, 10'000'000'000});
  const auto choice = std::make_shared<control::PlanChoice>(
      control::make_choice("auto:100us,1us", topology, control::Placement::all(topology), "test"));
  ASSERT_GT(choice->plans(), 1u);
  EngineEvent event;
  event.server = 2;
  event.disagreement.thread = choice->first_thread(1);
  EXPECT_EQ(describe_place(event, {{choice, 0}}, small_space()),
            "server [1,0], thread 0 of " + choice->plan(1).algorithm() + ", step 0");
  event.kind = EngineEvent::Kind::overflow;
  event.overflow.thread = choice->first_thread(1);
  EXPECT_NE(describe_overflow({}, event, {{choice, 0}}, small_space())
                .find("thread 0 of " + choice->plan(1).algorithm()),
            std::string::npos);
}

}  // namespace
}  // namespace gradcube::dataplane
