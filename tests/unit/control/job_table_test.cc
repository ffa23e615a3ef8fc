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

JobOptions default_options(const AddressSpace& space = kSpace) {
  JobOptions options;
  options.lanes = {{"bml", 0}};
  for (ServerId server = 0; server < space.servers(); ++server) options.members.push_back(server);
  return options;
}

std::variant<JobPlace, Refusal> join(JobTable& table, const std::string& name, ServerId server,
                                     TrainerInfo trainer) {
  return table.join({name, server, trainer, default_options(), std::nullopt});
}

JobId complete_job(JobTable& table, const std::string& name) {
  JobId id = 0;
  for (ServerId s = 0; s < kSpace.servers(); ++s) {
    id = joined(join(table, name, s, {static_cast<int32_t>(100 + s), 1000})).job;
  }
  return id;
}

TEST(JobTable, RunsAJobOnceATrainerHasJoinedOnEveryServer) {
  JobTable table(kSpace, 1);
  JobId id = 0;
  for (ServerId s = 0; s < 9; ++s) {
    const JobPlace result = joined(join(table, "mnist", s, {static_cast<int32_t>(100 + s), 1000}));
    EXPECT_EQ(result.rank, s);
    EXPECT_EQ(result.size, 9u);
    EXPECT_TRUE(s == 0 || result.job == id);
    id = result.job;
    EXPECT_EQ(table.find(id)->state, s == 8 ? JobState::running : JobState::gathering);
  }
  EXPECT_NE(id, protocol::kNoJob);
  EXPECT_EQ(table.missing(id), "");
}

TEST(JobTable, TellsWhoIsMissing) {
  JobTable table(kSpace, 1);
  const JobId id = joined(join(table, "mnist", 0, {1, 1})).job;
  EXPECT_EQ(table.missing(id),
            "8 of 9 trainers have not joined job \"mnist\": servers [0,1], [0,2], [1,0], [1,1], "
            "[1,2], [2,0], [2,1], [2,2]");
  for (ServerId s = 1; s < 9; ++s) {
    if (s != 7) joined(join(table, "mnist", s, {1, 1}));
  }
  EXPECT_EQ(table.missing(id), "1 of 9 trainers has not joined job \"mnist\": server [2,1]");
}

TEST(JobTable, NamesTheFirstEightOfManyMissing) {
  const AddressSpace space(std::vector<unsigned>{16});
  JobTable table(space, 1);
  const JobId id = joined(table.join({"x", 0, {1, 1}, default_options(space), std::nullopt})).job;
  EXPECT_NE(table.missing(id).find("[8] and 7 more"), std::string::npos) << table.missing(id);
}

TEST(JobTable, RefusesASecondTrainerOnAServerAndNamesTheFirst) {
  JobTable table(kSpace, 1);
  joined(join(table, "mnist", 7, {4711, 1000}));
  EXPECT_EQ(refused(join(table, "mnist", 7, {4712, 1000})),
            "job \"mnist\" already has a trainer on server [2,1]: pid 4711; a job has one trainer "
            "per server");
}

TEST(JobTable, RefusesBadNamesAndServers) {
  JobTable table(kSpace, 1);
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a/b"), std::string("a\0b", 3),
        std::string("\xc3\xa4"), std::string(64, 'a')}) {
    EXPECT_NE(refused(join(table, name, 0, {1, 1})), "") << name;
  }
  EXPECT_NE(refused(join(table, "ok", 9, {1, 1})), "");
  EXPECT_TRUE(table.jobs().empty());
  joined(join(table, std::string(63, 'a'), 0, {1, 1}));
  joined(join(table, "A.b_c-9", 0, {1, 1}));
}

TEST(JobTable, HoldsSixtyFourJobsAndNoMore) {
  JobTable table(kSpace, 0xfffffff0);  // the ids wrap
  std::set<JobId> ids;
  for (unsigned i = 0; i < kMaxJobs; ++i) {
    ids.insert(joined(join(table, "job" + std::to_string(i), 0, {1, 1})).job);
  }
  EXPECT_EQ(ids.size(), kMaxJobs);
  EXPECT_NE(refused(join(table, "another", 0, {1, 1})).find("64 jobs"), std::string::npos);
  EXPECT_EQ(refused(join(table, "job3", 1, {1, 1})), "");
  const auto departure = table.leave(*ids.begin(), 0);
  ASSERT_TRUE(departure);
  EXPECT_EQ(refused(join(table, "another", 0, {1, 1})), "");
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
  const JobPlace fresh = joined(join(table, "mnist", 7, {5000, 1}));
  EXPECT_NE(fresh.job, aborted);
  EXPECT_EQ(fresh.epoch, 0);
  EXPECT_EQ(joined(join(table, "mnist", 0, {5001, 1})).job, fresh.job);
  EXPECT_EQ(table.jobs().size(), 2u);
  EXPECT_EQ(table.find(aborted)->joined(), 8u);
}

TEST(JobTable, ForgetsAJobWithoutMembersAndGivesTheNextAnotherId) {
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
  const JobId second = joined(join(table, "mnist", 0, {1, 1})).job;
  EXPECT_NE(second, first);
  EXPECT_EQ(table.find(first), nullptr) << "an old id is not taken for the next job";
}

TEST(JobTable, GivesThePlaceOfARetiredJobToAnotherAndKeepsListingIt) {
  JobTable table(kSpace, 1);
  for (unsigned i = 0; i + 1 < kMaxJobs; ++i) {
    joined(join(table, "job" + std::to_string(i), 0, {1, 1}));
  }
  const JobId aborted = complete_job(table, "mnist");
  table.retire(aborted);
  EXPECT_NE(refused(join(table, "another", 0, {1, 1})), "") << "a running job keeps its place";
  table.died(aborted, 7);
  EXPECT_NE(refused(join(table, "another", 0, {1, 1})), "") << "engines may still have it";
  table.retire(aborted);
  const JobId other = joined(join(table, "another", 0, {1, 1})).job;
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

JoinRequest request_of(ServerId server, const JobOptions& options,
                       std::optional<std::uint32_t> rank = std::nullopt) {
  return {"mnist", server, {static_cast<int32_t>(100 + server), 1000}, options, rank};
}

TEST(JobTable, RunsAJobOnSomeOfTheServersAlone) {
  JobTable table(kSpace, 1);
  JobOptions options = default_options();
  options.members = {3, 4, 5};
  JobId id = 0;
  for (const ServerId server : options.members) {
    const JobPlace place = joined(table.join(request_of(server, options)));
    EXPECT_EQ(place.size, 3u);
    EXPECT_EQ(place.rank, server - 3) << "the place among the members";
    id = place.job;
  }
  EXPECT_EQ(table.find(id)->state, JobState::running);
  EXPECT_EQ(refused(table.join(request_of(6, options))),
            "job \"mnist\": this trainer's server [2,0] is not among the members that it asks for");
}

TEST(JobTable, RefusesATrainerWithOtherOptionsThanTheFirstOne) {
  JobTable table(kSpace, 1);
  joined(table.join(request_of(0, default_options())));
  JobOptions other = default_options();
  other.weight = 2;
  other.lanes.push_back({"bml", 5});
  EXPECT_EQ(refused(table.join(request_of(1, other))),
            "job \"mnist\" has weight 1, lane bml, all 9 servers; this trainer asks for weight 2, "
            "lanes bml, bml (priority 5), all 9 servers: expected the same of all its trainers");
  JobOptions row = default_options();
  row.members = {0, 1, 2};
  EXPECT_NE(refused(table.join(request_of(1, row))).find("3 servers [0,0] [0,1] [0,2]"),
            std::string::npos);
}

TEST(JobTable, GivesRanksAsTheTrainersWish) {
  JobTable table(kSpace, 1);
  JobOptions options = default_options();
  options.members = {3, 4, 5};
  EXPECT_EQ(joined(table.join(request_of(3, options, 2))).rank, 2u);
  EXPECT_EQ(refused(table.join(request_of(4, options, 2))),
            "job \"mnist\": rank 2 belongs to the trainer on server [1,0] (pid 103)");
  EXPECT_NE(refused(table.join(request_of(4, options))).find("from all trainers"),
            std::string::npos);
  EXPECT_NE(refused(table.join(request_of(4, options, 3))).find("expected 0 to 2"),
            std::string::npos);
  EXPECT_EQ(joined(table.join(request_of(4, options, 0))).rank, 0u);
  EXPECT_EQ(joined(table.join(request_of(5, options, 1))).rank, 1u);
}

}  // namespace
}  // namespace gradcube::control
