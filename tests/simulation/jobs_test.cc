// Jobs from the first trainer to the last: joining, leaving, dying, misbehaving.

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

#include "dataplane/engine/memory/guarded_memory.h"
#include "tests/simulation/jobs_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using dataplane::Departure;
using dataplane::JoinRefused;

TEST_F(Jobs, StartWhenTheLastTrainerHasJoinedAndDoWhatWasSubmittedBefore) {
  Trainers trainers;
  for (bcube::ServerId server = 0; server < 3; ++server) {
    trainers.push_back(cluster_.join("job", server, heap_for(collective_)));
    fill_and_submit(*trainers.back(), collective_);
  }
  cluster_.run_for(10 * kMillisecond);
  EXPECT_FALSE(all_idle(trainers));
  const std::string missing = cluster_.explain(*trainers[0], {0, 1});
  EXPECT_NE(missing.find("[1,1]"), std::string::npos) << missing;
  trainers.push_back(cluster_.join("job", 3, heap_for(collective_)));
  cluster_.run_for(kMillisecond);
  const std::string late = cluster_.explain(*trainers[0], {0, 1});
  EXPECT_NE(late.find("[1,1]"), std::string::npos) << late;
  fill_and_submit(*trainers.back(), collective_);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  expect_right(cluster_, trainers, collective_);
  leave_all(cluster_, trainers);
}

TEST_F(Jobs, RefuseASecondTrainerOnAServerAndAHeapOfNoBytes) {
  const auto first = cluster_.join("job", 0, 4096);
  EXPECT_THROW(cluster_.join("job", 0, 4096), JoinRefused);
  EXPECT_THROW(cluster_.join("job", 1, 0), JoinRefused);
  try {
    cluster_.join("job", 0, 4096);
  } catch (const JoinRefused& refused) {
    EXPECT_EQ(refused.code(), GRADCUBE_EJOB);
    EXPECT_FALSE(std::string(refused.what()).empty());
  }
}

TEST_F(Jobs, RefuseATrainerThatAsksForOtherLanesWeightOrMembers) {
  dataplane::TrainerRequest request{"job", 1};
  request.heap_bytes = 4096;
  request.options.lanes = {{"bml", 0}, {"bml", 2}};
  const auto first = cluster_.join(0, request);
  const auto expect_refused = [&](auto&& change) {
    dataplane::TrainerRequest other = request;
    change(other.options);
    try {
      cluster_.join(1, other);
      ADD_FAILURE() << "joined";
    } catch (const JoinRefused& refused) {
      EXPECT_EQ(refused.code(), GRADCUBE_EJOB) << refused.what();
    }
  };
  expect_refused([](control::JobOptions& options) { options.lanes.pop_back(); });
  expect_refused([](control::JobOptions& options) { options.lanes[1].priority = 3; });
  expect_refused([](control::JobOptions& options) { options.weight = 2; });
  expect_refused([](control::JobOptions& options) { options.members = {0, 1}; });
  EXPECT_TRUE(cluster_.join(1, request)->admitted());
}

TEST_F(Jobs, RefuseATrainerWhoseOwnServerIsNotAmongTheMembersThatItAsksFor) {
  dataplane::TrainerRequest request{"job", 1};
  request.heap_bytes = 4096;
  request.options.members = {0, 1};
  try {
    cluster_.join(3, request);
    ADD_FAILURE() << "joined";
  } catch (const JoinRefused& refused) {
    const std::string text = refused.what();
    EXPECT_EQ(refused.code(), GRADCUBE_EJOB) << text;
    EXPECT_NE(text.find("server [1,1] is not among the members"), std::string::npos) << text;
  }
  EXPECT_TRUE(cluster_.idle());
  const auto first = cluster_.join(0, request);
  const auto second = cluster_.join(1, request);
  EXPECT_TRUE(first->admitted());
  EXPECT_TRUE(second->admitted());
}

TEST_F(Jobs, FailWhatIsInFlightWhenATrainerDiesAndEverythingAfter) {
  const Trainers trainers = join();
  for (const auto& trainer : trainers) {
    if (trainer->rank() != 3) fill_and_submit(*trainer, collective_);
  }
  cluster_.run_for(kMillisecond);
  cluster_.leave(*trainers[3], Departure::death);
  cluster_.run_for(kMillisecond);
  for (const auto& trainer : trainers) {
    if (trainer->rank() == 3) continue;
    EXPECT_TRUE(
        cluster_.run_until([&] { return trainer->header().completion_tail.load() == 1; }, kSecond));
    EXPECT_EQ(codes(*trainer), std::vector<std::int32_t>{GRADCUBE_EPEER});
    EXPECT_NE(last_message(*trainer).find("[1,1]"), std::string::npos) << last_message(*trainer);
    fill_and_submit(*trainer, collective_);
    cluster_.run_for(kMillisecond);
    EXPECT_EQ(codes(*trainer), std::vector<std::int32_t>{GRADCUBE_EPEER});
  }
  leave_all(cluster_, trainers);
  // The name is free again.
  const Trainers again = join();
  allreduce(cluster_, again, collective_);
  leave_all(cluster_, again);
}

TEST_F(Jobs, LetTheOthersFinishWhatALeavingTrainerHasFinished) {
  const Trainers trainers = join();
  submit_all(trainers);
  EXPECT_TRUE(cluster_.run_until([&] { return trainers[1]->header().completion_tail.load() == 1; },
                                 kSecond));
  cluster_.leave(*trainers[1], Departure::orderly);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  expect_right(cluster_, trainers, collective_);
  leave_all(cluster_, trainers);
}

// However late: a pipeline's last stage may be slow.
TEST_F(Jobs, EndNothingThatDoesNotNeedATrainerThatHasLeft) {
  const Trainers trainers = join();
  fill_and_submit(*trainers[1], collective_);
  cluster_.run_for(kMillisecond);
  cluster_.leave(*trainers[1], Departure::orderly);
  cluster_.run_for(60 * kSecond);
  for (const auto& trainer : trainers) {
    EXPECT_TRUE(cluster_.told(*trainer).empty());
    if (trainer != trainers[1]) fill_and_submit(*trainer, collective_);
  }
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  expect_right(cluster_, trainers, collective_);
  for (unsigned round = 0; round < 2; ++round) {
    fill_and_submit(*trainers[0], collective_);
    EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
    const std::string number = std::to_string(2 + round);
    EXPECT_EQ(last_message(*trainers[0]),
              "collective " + number +
                  " of job \"job\" needs rank 1: the trainer of job \"job\" on "
                  "server [0,1] (pid 1001) left; failed: collective " +
                  number);
    EXPECT_EQ(trainers[0]->take_completions().back().code, GRADCUBE_EPEER);
  }
  leave_all(cluster_, trainers);
}

TEST_F(Jobs, PassOnWhyATrainerGaveUpWaiting) {
  const Trainers trainers = join();
  fill_and_submit(*trainers[1], collective_);
  cluster_.run_for(kMillisecond);
  cluster_.explain(*trainers[1], {0, 1});
  cluster_.leave(*trainers[1], Departure::orderly);
  for (const auto& trainer : trainers) {
    if (trainer == trainers[1]) continue;
    fill_and_submit(*trainer, collective_);
    fill_and_submit(*trainer, collective_);
  }
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  const std::string text = last_message(*trainers[0]);
  EXPECT_NE(text.find("(pid 1001) left; collective 1 of job \"job\""), std::string::npos) << text;
  EXPECT_NE(text.find("not submitted"), std::string::npos) << text;
  leave_all(cluster_, trainers);
}

TEST_F(Jobs, CloseASessionThatHoldsNonsenseAndTellTheOthers) {
  const Trainers trainers = join();
  const Trainers bystanders = cluster_.join_all("other", heap_for(collective_));
  trainers[0]->header().submission_tail.store(1'000'000);
  cluster_.run_for(kMillisecond);
  ASSERT_FALSE(cluster_.told(*trainers[0]).empty());
  EXPECT_TRUE(cluster_.told(*trainers[0]).back().evicted);
  EXPECT_EQ(cluster_.told(*trainers[0]).back().notice.code, GRADCUBE_EPROTOCOL);
  for (unsigned rank = 1; rank < 4; ++rank) {
    ASSERT_EQ(cluster_.told(*trainers[rank]).size(), 1u);
    EXPECT_EQ(cluster_.told(*trainers[rank]).back().notice.code, GRADCUBE_EPEER);
    EXPECT_NE(last_message(*trainers[rank]).find("[0,0]"), std::string::npos);
  }
  allreduce(cluster_, bystanders, collective_);
  leave_all(cluster_, trainers);
  leave_all(cluster_, bystanders);
}

// Where the trainers do not all complete at the same time.
class JobsUnderLoss : public Jobs {
 protected:
  JobsUnderLoss() : Jobs("0.2") {}
};

TEST_F(JobsUnderLoss, TakeNothingMoreOfATrainerThatHasSaidGoodbye) {
  const Trainers trainers = join();
  const auto completed = [](const auto& trainer) {
    return trainer->header().completion_tail.load() == 1;
  };
  submit_all(trainers);
  EXPECT_TRUE(cluster_.run_until(
      [&] { return std::any_of(trainers.begin(), trainers.end(), completed); }, kSecond));
  const auto first = std::find_if(trainers.begin(), trainers.end(), completed);
  ASSERT_FALSE(std::all_of(trainers.begin(), trainers.end(), completed)) << "nothing to drain for";
  cluster_.leave(**first, Departure::orderly);
  (*first)->submit(shared::kHeapOffset, collective_.count, aggregation::DataType::float32,
                   aggregation::Operation::sum);
  EXPECT_TRUE(cluster_.run_until(
      [&] { return std::all_of(trainers.begin(), trainers.end(), completed); }, kSecond));
  cluster_.run_for(kMillisecond);
  EXPECT_EQ((*first)->header().submission_head.load(), 1u);
  for (const auto& trainer : trainers) {
    if (trainer != *first) cluster_.leave(*trainer, Departure::orderly);
  }
}

TEST_F(Jobs, GiveTheirPlaceAndTheirEnginesBackWhenTheyAreAborted) {
  Trainers trainers;
  dataplane::TrainerRequest request{"", 1};
  request.heap_bytes = 4096;
  request.options.members = {0, 1};
  for (unsigned job = 0; job < control::kMaxJobs; ++job) {
    request.job = "job-" + std::to_string(job);
    for (const bcube::ServerId server : {0U, 1U})
      trainers.push_back(cluster_.join(server, request));
  }
  request.job = "another";
  request.options.members = {0, 2};
  EXPECT_THROW(cluster_.join(0, request), JoinRefused);
  for (const dataplane::EngineAt& at : cluster_.cluster().engines(0)) {
    EXPECT_EQ(at.engine->jobs().size(), control::kMaxJobs);
  }
  const SimulatedTrainer& remains = *trainers[14];
  cluster_.leave(*trainers[15], Departure::death);
  cluster_.run_for(kSecond);
  ASSERT_EQ(cluster_.jobs().back().state, dataplane::JobState::aborted);
  for (const dataplane::EngineAt& at : cluster_.cluster().engines(0)) {
    EXPECT_EQ(at.engine->jobs().size(), control::kMaxJobs - 1);
  }
  // The remaining trainer of the aborted job keeps its session, and hears of the failure.
  const auto another = cluster_.join(0, request);
  trainers[14]->submit(shared::kHeapOffset, 1, aggregation::DataType::float32,
                       aggregation::Operation::sum);
  cluster_.run_for(kMillisecond);
  EXPECT_EQ(codes(*trainers[14]), std::vector<std::int32_t>{GRADCUBE_EPEER})
      << last_message(remains);
  for (const auto& trainer : trainers) cluster_.leave(*trainer, Departure::orderly);
  cluster_.leave(*another, Departure::orderly);
  EXPECT_TRUE(cluster_.jobs().empty());
}

TEST_F(Jobs, AreEvictedOneByOneWhenTheyViolateTheProtocolAfterTheAbort) {
  const Trainers trainers = join();
  cluster_.leave(*trainers[0], Departure::death);
  cluster_.run_for(kSecond);
  for (unsigned rank = 1; rank < 4; ++rank) {
    trainers[rank]->header().submission_tail.store(1'000'000);
  }
  cluster_.run_for(kMillisecond);
  for (unsigned rank = 1; rank < 4; ++rank) {
    ASSERT_FALSE(cluster_.told(*trainers[rank]).empty());
    EXPECT_TRUE(cluster_.told(*trainers[rank]).back().evicted);
  }
  EXPECT_TRUE(cluster_.jobs().empty());
}

TEST_F(Jobs, LeaveALineInTheLogWhenATrainerDiesAndAJobIsAborted) {
  const Trainers trainers = join();
  cluster_.leave(*trainers[3], Departure::death);
  cluster_.run_for(kSecond);
  ASSERT_EQ(cluster_.log().size(), 2u);
  EXPECT_EQ(cluster_.log()[0], "the trainer of job \"job\" on server [1,1] (pid 1003) died");
  EXPECT_EQ(cluster_.log()[1].find("job \"job\" is aborted: "), 0u) << cluster_.log()[1];
  leave_all(cluster_, trainers);
}

TEST_F(Jobs, SayWhomTheyWaitForAndSinceWhen) {
  using std::chrono::milliseconds;
  dataplane::NodeGroup& nodes = cluster_.nodes();
  const control::Instant start = std::chrono::hours(1);
  Trainers trainers;
  trainers.push_back(cluster_.join("job", 1, heap_for(collective_)));
  nodes.note_waits(start);
  dataplane::JobFacts job = nodes.jobs(start + milliseconds(250)).at(0);
  EXPECT_EQ(job.waiting_for, (std::vector<bcube::ServerId>{0, 2, 3}));
  EXPECT_EQ(job.waiting_ms, 250);

  for (const bcube::ServerId server : {0, 2, 3}) {
    trainers.push_back(cluster_.join("job", server, heap_for(collective_)));
  }
  nodes.note_waits(start + milliseconds(300));
  EXPECT_TRUE(nodes.jobs(start).at(0).waiting_for.empty());

  for (const auto& trainer : trainers) {
    if (trainer->rank() != 2) fill_and_submit(*trainer, collective_);
  }
  cluster_.run_for(kMillisecond);
  nodes.note_waits(start + milliseconds(400));
  nodes.note_waits(start + milliseconds(500));
  job = nodes.jobs(start + milliseconds(1'900)).at(0);
  EXPECT_EQ(job.waiting_for, std::vector<bcube::ServerId>{2});
  EXPECT_EQ(job.waiting_ms, 1'500);
  ASSERT_EQ(job.trainers.size(), 4u);
  for (const dataplane::JobFacts::Trainer& trainer : job.trainers) {
    EXPECT_EQ(trainer.submitted(), trainer.server == 2 ? 0u : 1u);
    EXPECT_EQ(trainer.completed(), 0u);
  }

  for (const auto& trainer : trainers) {
    if (trainer->rank() == 2) fill_and_submit(*trainer, collective_);
  }
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  job = nodes.jobs(start + milliseconds(2'000)).at(0);
  EXPECT_TRUE(job.waiting_for.empty());
  EXPECT_EQ(job.waiting_ms, 0);
  EXPECT_EQ(job.collectives, 1u);
  leave_all(cluster_, trainers);
}

TEST_F(Jobs, TakeTheirMemoryWithThem) {
  const Trainers trainers = join();
  allreduce(cluster_, trainers, collective_);
  EXPECT_GE(cluster_.nodes().trainer_bytes(), 4 * collective_.bytes());
  leave_all(cluster_, trainers);
  cluster_.run_for(kMillisecond);
  EXPECT_EQ(cluster_.nodes().trainer_bytes(), 0u);
  EXPECT_TRUE(cluster_.jobs().empty());
}

// The others go on with what all have submitted, and must not take zeros for its data.
TEST_F(Jobs, EndWhenTheMemoryOfATrainerThatHasDiedFails) {
  dataplane::GuardedMemory::install_handler();
  const Trainers trainers = join();
  submit_all(trainers);
  cluster_.run_for(2'000);  // not all of it has been read
  ASSERT_FALSE(all_idle(trainers));
  cluster_.leave(*trainers[1], Departure::death);
  for (const dataplane::EngineAt& at : cluster_.cluster().engines(1)) {
    const dataplane::Session& session = at.engine->jobs().front()->session();
    const int empty = memfd_create("empty", MFD_CLOEXEC);
    std::uint8_t* heap = session.region().base() + shared::kHeapOffset;
    ASSERT_EQ(mmap(heap, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0), heap);
    close(empty);
  }
  const auto all_over = [&] {
    return std::all_of(trainers.begin(), trainers.end(), [&](const auto& trainer) {
      return trainer == trainers[1] || trainer->header().completion_tail.load() == 1;
    });
  };
  EXPECT_TRUE(cluster_.run_until(all_over, 60 * kSecond));
  for (const auto& trainer : trainers) {
    if (trainer == trainers[1]) continue;
    EXPECT_EQ(codes(*trainer), std::vector<std::int32_t>{GRADCUBE_EPEER}) << trainer->rank();
    cluster_.leave(*trainer, Departure::orderly);
  }
  EXPECT_TRUE(cluster_.run_until([&] { return cluster_.idle(); }, 60 * kSecond));
  cluster_.run_for(kSecond);
  EXPECT_FALSE(dataplane::GuardedMemory::pending()) << "other jobs go on";
}

}  // namespace
}  // namespace gradcube::simulation
