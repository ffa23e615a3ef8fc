// A session of several trainers on one server.
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "dataplane/engine/session/session.h"
#include "tests/unit/dataplane/engine/small_hub.h"
#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

constexpr unsigned kTrainers = 2;
constexpr std::uint64_t kTrainerHeap = 1 << 16;

class SessionTrainersTest : public testing::Test {
 protected:
  SessionTrainersTest() {
    session_ = std::make_unique<Session>(whole_region(kTrainerHeap), doorbell(),
                                         SessionShape{4, {1}, false, kTrainers},
                                         std::vector<Doorbell*>{}, nullptr, 1);
  }
  ~SessionTrainersTest() override {
    for (const int end : trainer_ends_) close(end);
  }

  void add_the_other() { session_->add(0, whole_region(kTrainerHeap), doorbell()); }

  void submit(unsigned local, std::uint64_t count = 16) {
    const SessionRegion& region = session_->region(local);
    shared::Submission& submission = submission_entry(region, submitted_[local]);
    submission = {};
    submission.request = 100 * (local + 1) + ++submitted_[local];
    submission.offset = shared::kHeapOffset;
    submission.count = count;
    region.header().submission_tail.store(submitted_[local]);
    while (session_->take() == Session::Take::taken) {
    }
  }
  void push(unsigned local, shared::PushKind kind = shared::PushKind::gradients) {
    const SessionRegion& region = session_->region(local);
    submission_entry(region, submitted_[local]) = small_push(100 * (local + 1), 0, kind);
    region.header().submission_tail.store(++submitted_[local]);
    while (session_->take() == Session::Take::taken) {
    }
  }
  std::uint64_t completions(unsigned local) const {
    return session_->region(local).header().completion_tail.load();
  }

  std::unique_ptr<Session> session_;

 private:
  int doorbell() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    trainer_ends_.push_back(ends[1]);
    return ends[0];
  }

  std::vector<int> trainer_ends_;
  std::uint64_t submitted_[kTrainers] = {};
};

TEST_F(SessionTrainersTest, PublishesWhatAllHaveSubmitted) {
  submit(1);
  EXPECT_EQ(session_->published(0), 0u) << "the other has not even joined";
  add_the_other();
  submit(1);
  submit(0);
  EXPECT_EQ(session_->published(0), 1u);
  EXPECT_EQ(session_->published(), 1u);
  EXPECT_EQ(session_->submitted(0, 1), 2u);
  EXPECT_TRUE(session_->request(0, 1).agreed);
  EXPECT_EQ(session_->request(0, 1, 1).buffer, session_->region(1).base() + shared::kHeapOffset);
  submit(0);
  EXPECT_EQ(session_->published(0), 2u);
}

TEST_F(SessionTrainersTest, SaysWhereTheyHaveSubmittedDifferentCollectives) {
  add_the_other();
  submit(0, 16);
  submit(1, 17);
  submit(0, 18);
  submit(1, 18);
  EXPECT_FALSE(session_->request(0, 1).agreed);
  EXPECT_TRUE(session_->request(0, 2).agreed);
}

TEST_F(SessionTrainersTest, CompletesForEachWhatItHasSubmitted) {
  add_the_other();
  submit(0);
  submit(0);
  submit(1);
  session_->complete_through(0, 1, 0);
  EXPECT_EQ(session_->completed(0), 1u);
  EXPECT_EQ(session_->region(0).completion(0).request, 101u);
  EXPECT_EQ(session_->region(1).completion(0).request, 201u);
  session_->complete_through(0, 5, GRADCUBE_EMISMATCH);
  EXPECT_EQ(completions(0), 2u);
  EXPECT_EQ(completions(1), 1u);
  EXPECT_EQ(session_->completed(0), 1u) << "of all";
  EXPECT_FALSE(session_->anything_in_flight());
}

TEST_F(SessionTrainersTest, NamesTheViolatorAndGoesOnWithTheOthersWithoutIt) {
  add_the_other();
  session_->region(1).header().submission_tail.store(1ULL << 40);
  submit(0);
  EXPECT_EQ(session_->take(), Session::Take::violation);
  EXPECT_EQ(session_->violator(), 1u);
  session_->dismiss(1);
  EXPECT_EQ(session_->violation(), nullptr);
  submit(0);
  EXPECT_EQ(session_->submitted(0, 0), 2u);
  EXPECT_EQ(session_->published(0), 0u);
}

TEST_F(SessionTrainersTest, PushesToAHubWhenAllTrainersHave) {
  add_the_other();
  const std::shared_ptr<ServerHub> hub = small_hub(1, kTrainers);
  session_->set_hub(*hub);
  push(1);
  EXPECT_FALSE(hub->board().has_pushed(0));
  EXPECT_EQ(session_->violation(), nullptr);
  push(0);
  EXPECT_EQ(hub->board().next_pushed(0), 0U);
  for (unsigned local = 0; local < kTrainers; ++local) {
    EXPECT_EQ(hub->board().pushed(0).buffers[local],
              session_->region(local).base() + shared::kHeapOffset);
  }
  hub->board().end(0, 0, 0);
  EXPECT_EQ(session_->end_pushes().rounds, 1U);
  for (unsigned local = 0; local < kTrainers; ++local) {
    EXPECT_EQ(completions(local), 1U);
    EXPECT_EQ(session_->region(local).completion(0).request, 100U * (local + 1));
    EXPECT_EQ(session_->region(local).completion(0).code, 0);
  }
}

TEST_F(SessionTrainersTest, EndsThePushesOfOneTrainerThatWaitForTheOther) {
  add_the_other();
  const std::shared_ptr<ServerHub> hub = small_hub(1, kTrainers);
  session_->set_hub(*hub);
  push(1);
  session_->end_hub(GRADCUBE_EPEER, 3);
  EXPECT_EQ(completions(0), 0U);
  ASSERT_EQ(completions(1), 1U);
  EXPECT_EQ(session_->region(1).completion(0).code, GRADCUBE_EPEER);
  EXPECT_EQ(session_->region(1).completion(0).notice, 3U);
}

TEST_F(SessionTrainersTest, FindsTrainersOfAServerThatPushDifferently) {
  add_the_other();
  const std::shared_ptr<ServerHub> hub = small_hub(1, kTrainers);
  session_->set_hub(*hub);
  push(0);
  push(1, shared::PushKind::weights);
  EXPECT_EQ(hub->board().disagreement(), 0U);
  EXPECT_FALSE(hub->board().has_pushed(0));
}

}  // namespace
}  // namespace gradcube::dataplane
