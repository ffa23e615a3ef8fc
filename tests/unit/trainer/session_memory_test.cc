// How the heap of a session grows: whose memory it is, what the daemon hears of it, and what
// happens when there is no more.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/trainer/mebibyte.h"
#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {
namespace {

class MemoryTest : public SessionTest {
 protected:
  std::vector<shared::Grow> grows() { return daemon_.heard().grows; }
  // The daemon answers a report before it notes it down.
  void expect_grows(std::size_t count) {
    EXPECT_TRUE(eventually([&] { return grows().size() >= count; }));
    EXPECT_EQ(grows().size(), count);
  }
  // The trainer gets memory all the same, and learns of the loss when it submits.
  static void expect_lost(gradcube_session* session, void* buffer, int code) {
    ASSERT_NE(buffer, nullptr);
    std::memset(buffer, 1, 4000);
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_allreduce(session, buffer, 1000, GRADCUBE_FLOAT32, GRADCUBE_SUM, &request),
              code)
        << gradcube_last_error(session);
  }
};

TEST_F(MemoryTest, ItsFileIsSealedAgainstAnyLossOfPages) {
  open("job");
  EXPECT_EQ(daemon_.heard().seals & shared::kSeals, shared::kSeals);
}

TEST_F(MemoryTest, NothingIsTouchedBeforeItIsAllocated) {
  open("job");
  EXPECT_TRUE(grows().empty());
}

TEST_F(MemoryTest, WhatTheDaemonHearsOfHasPagesOfTheTrainer) {
  gradcube_session* session = open("job");
  ASSERT_NE(gradcube_alloc(session, 10 * kMiB), nullptr);
  expect_grows(2);
  const Heard heard = daemon_.heard();
  ASSERT_EQ(heard.grows.size(), 2U);
  EXPECT_EQ(heard.grows[0].end, shared::kHeapOffset) << "first it asks";
  EXPECT_EQ(heard.grows[0].wanted, heard.grows[1].end);
  EXPECT_GE(heard.grows[1].end, shared::kHeapOffset + 10 * kMiB);
  EXPECT_GE(heard.resident_bytes, 10 * kMiB) << "they were touched before the daemon heard of them";
}

TEST_F(MemoryTest, OfWhatIsForgottenIsTheTrainersOwnAtOnceAndStaysAsItIs) {
  gradcube_session* session = open("hold");
  std::vector<float> sums(100, 1);
  std::vector<std::uint8_t> bytes(100, 1);
  std::size_t received = 77;
  std::uint64_t messages[2] = {};
  const std::uint64_t sum = start(session, sums.data(), sums.size());
  ASSERT_EQ(gradcube_recv(session, bytes.data(), 100, 1, 100, &received, &messages[0]),
            GRADCUBE_OK);
  for (const std::uint64_t request : {sum, messages[0]}) {
    ASSERT_EQ(gradcube_forget(session, request), GRADCUBE_OK) << gradcube_last_error(session);
    EXPECT_EQ(gradcube_forget(session, request), GRADCUBE_OK) << "a second call changes nothing";
  }
  ASSERT_EQ(gradcube_send(session, bytes.data(), 100, 1, 5, &messages[1]), GRADCUBE_OK)
      << gradcube_last_error(session);
  ASSERT_EQ(gradcube_forget(session, messages[1]), GRADCUBE_OK);
  std::fill(sums.begin(), sums.end(), 5.0F);
  const std::uint64_t next = start(session, sums.data(), sums.size());
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, sum, kLong), GRADCUBE_ECANCELED);
  EXPECT_TRUE(says(session, ("request " + std::to_string(sum) + " was forgotten").c_str()));
  EXPECT_EQ(gradcube_wait(session, messages[0], kLong), GRADCUBE_ECANCELED);
  EXPECT_EQ(received, 0U);
  EXPECT_EQ(gradcube_wait(session, messages[1], kLong), GRADCUBE_OK) << "nothing came of it";
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(100, 1));
  EXPECT_EQ(sums[99], 5) << "what was written since is the trainer's own";
  EXPECT_EQ(gradcube_wait(session, next, kLong), GRADCUBE_OK);
  EXPECT_GT(sums[99], 5) << "and what it has submitted with it since comes";
  EXPECT_EQ(gradcube_forget(session, next), GRADCUBE_EINVAL) << "its end was reported";
}

TEST_F(MemoryTest, ThatTheDaemonWorksOnItselfIsNotForgottenBeforeTheEnd) {
  gradcube_session* session = open("hold");
  pollfd ended{gradcube_event_fd(session), POLLIN, 0};
  float* shared = floats(session, 100);
  const std::uint64_t request = start(session, shared, 100);
  EXPECT_EQ(gradcube_forget(session, request), GRADCUBE_EINVAL);
  EXPECT_TRUE(says(session, "the daemon works on its buffer itself"));
  daemon_.release();
  ASSERT_EQ(::poll(&ended, 1, kLong), 1);
  EXPECT_EQ(gradcube_forget(session, request), GRADCUBE_OK) << gradcube_last_error(session);
  const std::uint64_t next = start(session, shared, 100);
  EXPECT_EQ(gradcube_wait(session, next, kLong), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
}

TEST_F(MemoryTest, FreedMemoryServesLaterBuffersWithoutMore) {
  gradcube_session* session = open("job");
  for (int i = 0; i < 100; ++i) {
    void* buffer = gradcube_alloc(session, 30 * kMiB);
    ASSERT_NE(buffer, nullptr);
    gradcube_free(session, buffer);
  }
  expect_grows(2);
}

TEST_F(MemoryTest, ItGrowsInFewSteps) {
  gradcube_session* session = open("job");
  for (int i = 0; i < 60; ++i) ASSERT_NE(gradcube_alloc(session, kMiB), nullptr);
  EXPECT_LE(grows().size(), 40U);
}

TEST_F(MemoryTest, AllOfTheHeapCanBeUsedAndNoMore) {
  gradcube_session* session = open("job");
  ASSERT_NE(gradcube_alloc(session, 64 * kMiB), nullptr);
  EXPECT_EQ(gradcube_alloc(session, 1), nullptr);
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_ENOMEM);
  EXPECT_TRUE(says(session, "GRADCUBE_HEAP"));
}

TEST_F(MemoryTest, BuffersOutsideTheHeapAreStagedInMemoryThatIsConfirmed) {
  gradcube_session* session = open("job");
  std::vector<float> buffer(3 * kMiB / 4, 1);
  const std::uint64_t request = start(session, buffer.data(), buffer.size());
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK) << gradcube_last_error(session);
  EXPECT_EQ(buffer.front(), FakeDaemon::kSize);
  expect_grows(2);
}

TEST_F(MemoryTest, ARefusalIsTheDaemonsWordAndTouchesNothing) {
  gradcube_session* session = open("poor");
  EXPECT_EQ(gradcube_alloc(session, 8 * kMiB), nullptr);
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_ENOMEM);
  EXPECT_EQ(std::string(gradcube_last_error(session)), kQuota);
  EXPECT_LT(daemon_.heard().resident_bytes, kMiB);
  std::vector<float> buffer(2 * kMiB, 1);
  std::uint64_t request = 0;
  EXPECT_EQ(gradcube_allreduce(session, buffer.data(), buffer.size(), GRADCUBE_FLOAT32,
                               GRADCUBE_SUM, &request),
            GRADCUBE_ENOMEM);
  EXPECT_EQ(std::string(gradcube_last_error(session)), kQuota);
  // What remains can be used to its end, though growing by more than is needed is refused.
  ASSERT_NE(gradcube_alloc(session, kPoorHeap - 4096), nullptr) << gradcube_last_error(session);
  ASSERT_NE(gradcube_alloc(session, 4096), nullptr);
  EXPECT_EQ(gradcube_alloc(session, 4096), nullptr);
}

TEST_F(MemoryTest, PagesThatAreSwappedOutAreTouchedAgain) {
  gradcube_session* session = open("swapped");
  EXPECT_NE(gradcube_alloc(session, kMiB), nullptr) << gradcube_last_error(session);
  expect_grows(3);
}

TEST_F(MemoryTest, ADaemonThatConfirmsWhatItWasNotToldIsNotBelieved) {
  gradcube_session* session = open("generous");
  expect_lost(session, gradcube_alloc(session, kMiB), GRADCUBE_ENODAEMON);
}

TEST_F(MemoryTest, ADaemonThatDiesMeanwhileIsNoticed) {
  gradcube_session* session = open("undecided");
  std::thread killer([this] {
    EXPECT_TRUE(eventually([this] { return !grows().empty(); }));
    daemon_.kill();
  });
  expect_lost(session, gradcube_alloc(session, kMiB), GRADCUBE_ENODAEMON);
  killer.join();
}

TEST_F(MemoryTest, ADaemonThatDoesNotAnswerIsNotWaitedForWithoutEnd) {
  gradcube_session* session = open("undecided");
  EXPECT_EQ(gradcube_alloc(session, kMiB), nullptr);
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_ENODAEMON);
  EXPECT_TRUE(says(session, "did not confirm memory within 5 seconds"));
  expect_grows(1);
}

TEST_F(MemoryTest, ManyThreadsGetMemoryAndReduceAtOnce) {
  gradcube_session* session = open("job");
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        std::vector<float> outside(50'000, 1);
        float* inside = floats(session, 100'000);
        ASSERT_NE(inside, nullptr) << gradcube_last_error(session);
        const std::uint64_t first = start(session, inside, 100'000);
        const std::uint64_t second = start(session, outside.data(), outside.size());
        EXPECT_EQ(gradcube_wait(session, first, kLong), GRADCUBE_OK);
        EXPECT_EQ(gradcube_wait(session, second, kLong), GRADCUBE_OK);
        EXPECT_EQ(outside.back(), FakeDaemon::kSize);
        gradcube_free(session, inside);
        ++served;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 160);
}

TEST_F(MemoryTest, AnAbortEndsTheWaitForMemory) {
  gradcube_session* session = open("undecided");
  std::thread aborter([&] {
    EXPECT_TRUE(eventually([this] { return !grows().empty(); }));
    gradcube_abort(session);
  });
  expect_lost(session, gradcube_alloc(session, kMiB), GRADCUBE_EABORTED);
  aborter.join();
}

}  // namespace
}  // namespace gradcube::trainer
