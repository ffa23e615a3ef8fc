#include "dataplane/engine/job_watch.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <memory>

#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {
namespace {

constexpr std::int64_t kIdle = JobWatch::kIdle;

// Jobs that run and have nothing to do, and what their trainers see.
class JobWatchTest : public testing::Test {
 protected:
  EngineJob& add(bool leader = true) {
    TestSession& session = sessions_.emplace_back(1);
    EngineJob& job = jobs_.emplace_back(jobs_.size() + 1, *session, LanePlans{}, 1, leader);
    job.state = EngineJob::State::running;
    watch_.add(job);
    return job;
  }
  void look(std::int64_t after = 1) { watch_.look(now_ += after); }
  // Until all those doze that may.
  void let_doze() {
    look(kIdle);
    for (std::size_t i = 0; i < 4 * jobs_.size(); ++i) look();
  }
  bool is_watched(const EngineJob& job) const {
    const auto& watched = watch_.watched();
    return std::find(watched.begin(), watched.end(), &job) != watched.end();
  }
  static bool must_ring(EngineJob& job) {
    return job.session().region().header().daemon_asleep.load() != 0;
  }

  std::deque<TestSession> sessions_;
  std::deque<EngineJob> jobs_;
  JobWatch watch_;
  std::int64_t now_ = 1;
};

TEST_F(JobWatchTest, LetsAJobDozeThatHasNothingToDoForAWhile) {
  EngineJob& idle = add();
  EngineJob& busy = add();
  look(kIdle / 2);
  watch_.record_work(busy);
  look(kIdle / 2);
  for (unsigned i = 0; i < 8; ++i) look();
  EXPECT_FALSE(is_watched(idle));
  EXPECT_TRUE(must_ring(idle));
  EXPECT_TRUE(is_watched(busy));
  EXPECT_FALSE(must_ring(busy));
}

// However late the engine looks after it was told.
TEST_F(JobWatchTest, LetsNoJobDozeBeforeItHasToldOfATrainerThatHasLeft) {
  EngineJob& job = add();
  const auto all = control::Placement::all(control::parse_topology("bcube:2,2", "test"));
  job.set_mailroom(std::make_unique<Mailroom>(job, job.session(), job.rank_order, all, 0, 1024, 16,
                                              FlowSettings{}, 1));
  watch_.wake(job);
  job.mailroom()->depart(0, 0);
  let_doze();
  EXPECT_TRUE(is_watched(job));
  job.mailroom()->work();
  let_doze();
  EXPECT_FALSE(is_watched(job));
}

TEST_F(JobWatchTest, LetsNoJobDozeThatIsInFlightOrDoesNotRun) {
  EngineJob& in_flight = add();
  EngineJob& held = add();
  EngineJob& halted = add();
  sessions_[0].publish(4);
  held.state = EngineJob::State::held;
  halted.state = EngineJob::State::halted;
  let_doze();
  EXPECT_TRUE(is_watched(in_flight) && is_watched(held) && is_watched(halted));
}

TEST_F(JobWatchTest, FindsASubmissionOfAnyJobThatDozesWithinOneRoundOfLooks) {
  for (unsigned i = 0; i < 9; ++i) add();
  let_doze();
  ASSERT_EQ(watch_.dozing(), 9u);
  for (std::size_t number = 0; number < 9; ++number) {
    sessions_[number].submit(4);
    for (std::size_t i = 0; i < (9 + JobWatch::kLooks - 1) / JobWatch::kLooks; ++i) look();
    EXPECT_TRUE(is_watched(jobs_[number])) << number;
    EXPECT_FALSE(must_ring(jobs_[number])) << number;
    ASSERT_EQ(sessions_[number]->take(), Session::Take::taken);
    sessions_[number]->complete_through(0, 1, 0);
    jobs_[number].seen = 1;
    let_doze();
    EXPECT_FALSE(is_watched(jobs_[number])) << number;
  }
}

TEST_F(JobWatchTest, FindsASubmissionThatCameWhileTheJobWasToDoze) {
  EngineJob& job = add();
  look(kIdle);
  sessions_[0].submit(4);
  for (unsigned i = 0; i < 4; ++i) look(kIdle);
  EXPECT_TRUE(is_watched(job));
  EXPECT_FALSE(must_ring(job));
}

TEST_F(JobWatchTest, SeesBeforeASleepWhatAnotherEngineHasPublished) {
  for (unsigned i = 0; i < 9; ++i) add(false);
  let_doze();
  ASSERT_EQ(watch_.dozing(), 9u);
  for (TestSession& session : sessions_) session.publish(4);
  watch_.prepare_wait();
  look();
  EXPECT_EQ(watch_.dozing(), 0u);
  EXPECT_FALSE(must_ring(jobs_[0])) << "another engine takes its submissions";
}

// Its trainer has rung once, and a poller that was woken looks at a few jobs and may sleep again.
TEST_F(JobWatchTest, SeesBeforeASleepWhatAnyTrainerHasSubmitted) {
  for (unsigned i = 0; i < 9; ++i) add();
  let_doze();
  ASSERT_EQ(watch_.dozing(), 9u);
  for (TestSession& session : sessions_) session.submit(4);
  watch_.prepare_wait();
  look();
  EXPECT_EQ(watch_.dozing(), 0u);
}

TEST_F(JobWatchTest, AsksTheTrainersOfAllJobsToRingDuringASleepAndOfThoseThatDozeAfterIt) {
  EngineJob& dozing = add();
  let_doze();
  EngineJob& watched = add();
  watch_.prepare_wait();
  EXPECT_TRUE(must_ring(dozing) && must_ring(watched));
  watch_.finish_wait();
  EXPECT_TRUE(must_ring(dozing));
  EXPECT_FALSE(must_ring(watched));
}

TEST_F(JobWatchTest, WatchesAJobThatIsWokenForAWhileAndForgetsOneThatIsRemoved) {
  EngineJob& job = add();
  EngineJob& gone = add();
  let_doze();
  watch_.wake(job);
  EXPECT_FALSE(must_ring(job));
  look(kIdle / 2);
  EXPECT_TRUE(is_watched(job));
  watch_.remove(gone);
  watch_.remove(job);
  EXPECT_EQ(watch_.watched().size() + watch_.dozing(), 0u);
}

}  // namespace
}  // namespace gradcube::dataplane
