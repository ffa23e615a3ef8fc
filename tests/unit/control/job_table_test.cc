#include "control/jobs/job_table.h"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace gradcube::control {
namespace {

using bcube::AddressSpace;
using bcube::ServerId;

const AddressSpace kSpace(std::vector<unsigned>{3, 3});

JobPlace joined(const std::variant<JobPlace, Refusal>& result) {
  EXPECT_TRUE(std::holds_alternative<JobPlace>(result)) << std::get<Refusal>(result).message;
  return std::get<JobPlace>(result);
}

std::string refused(const std::variant<JobPlace, Refusal>& result) {
  return std::holds_alternative<Refusal>(result) ? std::get<Refusal>(result).message : "";
}

JobId complete_job(JobTable& table, const std::string& name) {
  JobId id = 0;
  for (ServerId s = 0; s < kSpace.servers(); ++s) {
    id = joined(table.join(name, s, {static_cast<int32_t>(100 + s), 1000})).job;
  }
  return id;
}

TEST(JobTable, RunsAJobOnceATrainerHasJoinedOnEveryServer) {
  JobTable table(kSpace, 1);
  JobId id = 0;
  for (ServerId s = 0; s < 9; ++s) {
    const JobPlace result = joined(table.join("mnist", s, {static_cast<int32_t>(100 + s), 1000}));
    EXPECT_EQ(result.rank, s);
    EXPECT_EQ(result.size, 9u);
    EXPECT_TRUE(s == 0 || result.job == id);
    id = result.job;
    EXPECT_EQ(table.find(id)->state, s == 8 ? JobState::running : JobState::gathering);
  }
  EXPECT_LT(job_index(id), kMaxJobs);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(table.missing(id), "");
}

TEST(JobTable, TellsWhoIsMissing) {
  JobTable table(kSpace, 1);
  const JobId id = joined(table.join("mnist", 0, {1, 1})).job;
  EXPECT_EQ(table.missing(id),
            "8 of 9 trainers have not joined job \"mnist\": servers [0,1], [0,2], [1,0], [1,1], "
            "[1,2], [2,0], [2,1], [2,2]");
  for (ServerId s = 1; s < 9; ++s) {
    if (s != 7) joined(table.join("mnist", s, {1, 1}));
  }
  EXPECT_EQ(table.missing(id), "1 of 9 trainers has not joined job \"mnist\": server [2,1]");
}

TEST(JobTable, NamesTheFirstEightOfManyMissing) {
  JobTable table(AddressSpace(std::vector<unsigned>{16}), 1);
  const JobId id = joined(table.join("x", 0, {1, 1})).job;
  EXPECT_NE(table.missing(id).find("[8] and 7 more"), std::string::npos) << table.missing(id);
}

TEST(JobTable, RefusesASecondTrainerOnAServerAndNamesTheFirst) {
  JobTable table(kSpace, 1);
  joined(table.join("mnist", 7, {4711, 1000}));
  EXPECT_EQ(refused(table.join("mnist", 7, {4712, 1000})),
            "job \"mnist\" already has a trainer on server [2,1]: pid 4711; a job has one trainer "
            "per server");
}

TEST(JobTable, RefusesBadNamesAndServers) {
  JobTable table(kSpace, 1);
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a/b"), std::string("a\0b", 3),
        std::string("\xc3\xa4"), std::string(64, 'a')}) {
    EXPECT_NE(refused(table.join(name, 0, {1, 1})), "") << name;
  }
  EXPECT_NE(refused(table.join("ok", 9, {1, 1})), "");
  EXPECT_TRUE(table.jobs().empty());
  joined(table.join(std::string(63, 'a'), 0, {1, 1}));
  joined(table.join("A.b_c-9", 0, {1, 1}));
}

TEST(JobTable, HoldsSixtyFourJobsAndNoMore) {
  JobTable table(kSpace, 0xffffff);  // the nonces wrap
  std::set<JobId> ids;
  for (unsigned i = 0; i < kMaxJobs; ++i) {
    ids.insert(joined(table.join("job" + std::to_string(i), 0, {1, 1})).job);
  }
  EXPECT_EQ(ids.size(), kMaxJobs);
  EXPECT_NE(refused(table.join("another", 0, {1, 1})).find("64 jobs"), std::string::npos);
  EXPECT_EQ(refused(table.join("job3", 1, {1, 1})), "");
  const auto departure = table.leave(*ids.begin(), 0);
  ASSERT_TRUE(departure);
  EXPECT_EQ(refused(table.join("another", 0, {1, 1})), "");
}

TEST(JobTable, TellsTheOthersWhichTrainerDied) {
  JobTable table(kSpace, 1);
  const JobId id = complete_job(table, "mnist");
  const auto departure = table.died(id, 7);
  ASSERT_TRUE(departure);
  EXPECT_EQ(departure->message, "the trainer of job \"mnist\" on server [2,1] (pid 107) died");
  EXPECT_FALSE(departure->forgotten);
  EXPECT_EQ(table.find(id)->state, JobState::aborted);
}

TEST(JobTable, LetsEachTrainerGoOnce) {
  JobTable table(kSpace, 1);
  const JobId id = complete_job(table, "mnist");
  EXPECT_TRUE(table.died(id, 7));
  EXPECT_FALSE(table.died(id, 7)) << "it is gone already";
  EXPECT_FALSE(table.died(id, 99));
}

TEST(JobTable, StartsAFreshJobWhenTheNameOfAnAbortedOneIsJoined) {
  JobTable table(kSpace, 1);
  const JobId aborted = complete_job(table, "mnist");
  table.died(aborted, 7);
  const JobPlace fresh = joined(table.join("mnist", 7, {5000, 1}));
  EXPECT_NE(fresh.job, aborted);
  EXPECT_EQ(fresh.epoch, 0);
  EXPECT_EQ(joined(table.join("mnist", 0, {5001, 1})).job, fresh.job);
  EXPECT_EQ(table.jobs().size(), 2u);
  EXPECT_EQ(table.find(aborted)->joined, 8u);
}

TEST(JobTable, ForgetsAJobWithoutMembersAndGivesItsPlaceANewNonce) {
  JobTable table(kSpace, 1);
  const JobId first = complete_job(table, "mnist");
  for (ServerId s = 0; s < 9; ++s) {
    const auto departure = table.leave(first, s);
    ASSERT_TRUE(departure);
    EXPECT_EQ(departure->forgotten, s == 8);
  }
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_FALSE(table.leave(first, 0));
  EXPECT_FALSE(table.begin_reset(first));
  EXPECT_EQ(table.missing(first), "");
  const JobId second = joined(table.join("mnist", 0, {1, 1})).job;
  EXPECT_EQ(job_index(second), job_index(first));
  EXPECT_NE(job_nonce(second), job_nonce(first));
  EXPECT_EQ(table.find(first), nullptr) << "an old id is not taken for the next job in its place";
}

TEST(JobTable, GivesThePlaceOfARetiredJobToAnotherAndKeepsListingIt) {
  JobTable table(kSpace, 1);
  for (unsigned i = 0; i + 1 < kMaxJobs; ++i) {
    joined(table.join("job" + std::to_string(i), 0, {1, 1}));
  }
  const JobId aborted = complete_job(table, "mnist");
  table.retire(aborted);
  EXPECT_NE(refused(table.join("another", 0, {1, 1})), "") << "a running job keeps its place";
  table.died(aborted, 7);
  EXPECT_NE(refused(table.join("another", 0, {1, 1})), "") << "engines may still have it";
  table.retire(aborted);
  const JobId other = joined(table.join("another", 0, {1, 1})).job;
  EXPECT_EQ(job_index(other), job_index(aborted));
  EXPECT_NE(other, aborted);
  EXPECT_EQ(table.jobs().size(), kMaxJobs + 1);
  ASSERT_NE(table.find(aborted), nullptr);
  EXPECT_EQ(table.find(aborted)->name, "mnist");
  for (ServerId s = 0; s < 9; ++s) {
    if (s == 7) continue;
    EXPECT_TRUE(table.leave(aborted, s));
  }
  EXPECT_EQ(table.find(aborted), nullptr);
  EXPECT_EQ(table.find(other)->name, "another") << "the new job in its place is not touched";
  EXPECT_EQ(table.jobs().size(), kMaxJobs);
}

TEST(JobTable, BeginsANewEpochWithEveryReset) {
  JobTable table(kSpace, 1);
  const JobId id = complete_job(table, "mnist");
  EXPECT_EQ(table.begin_reset(id), 1);
  EXPECT_EQ(table.begin_reset(id), 2);
  EXPECT_EQ(table.find(id)->state, JobState::running);
  for (unsigned i = 0; i < 65534; ++i) table.begin_reset(id);
  EXPECT_EQ(table.find(id)->epoch, 0) << "16 bits on the wire: it wraps";
}

TEST(JobTable, DoesNotMistakeAnyNumberForAJob) {
  JobTable table(kSpace, 1);
  const JobId id = complete_job(table, "mnist");
  for (const JobId wrong : {0u, id + 1, id + 256, id | 0xff, UINT32_MAX}) {
    EXPECT_EQ(table.find(wrong), nullptr);
    EXPECT_FALSE(table.died(wrong, 0));
  }
  EXPECT_EQ(state_name(table.find(id)->state), "running");
}

}  // namespace
}  // namespace gradcube::control
