// Sessions whose daemon behaves.
#include <cstring>
#include <limits>

#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {
namespace {

TEST_F(SessionTest, KnowsItsRankAndTheSizeOfItsJob) {
  gradcube_session* session = open("job");
  EXPECT_EQ(gradcube_rank(session), FakeDaemon::kRank);
  EXPECT_EQ(gradcube_size(session), FakeDaemon::kSize);
  EXPECT_EQ(gradcube_server(session), FakeDaemon::kServer);
}

TEST_F(SessionTest, FindsTheOnlyServerOfTheRunDirectory) {
  const Environment run("GRADCUBE_RUN", directory_.path());
  gradcube_session* session = nullptr;
  EXPECT_EQ(gradcube_open(nullptr, "job", nullptr, &session), GRADCUBE_OK)
      << gradcube_last_error(nullptr);
  gradcube_close(session);
}

TEST_F(SessionTest, AllReducesSharedMemoryInPlace) {
  gradcube_session* session = open("job");
  float* buffer = floats(session, 1000, 2);
  ASSERT_NE(buffer, nullptr);
  const std::uint64_t request = start(session, buffer, 1000);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(buffer[i], 18);
}

TEST_F(SessionTest, HandsEveryTypeAndOperationToTheDaemon) {
  gradcube_session* session = open("job");
  auto* integers = static_cast<std::int64_t*>(gradcube_alloc(session, 24));
  std::uint64_t request = 0;
  for (const gradcube_op op : {GRADCUBE_SUM, GRADCUBE_AVERAGE, GRADCUBE_MIN, GRADCUBE_MAX}) {
    integers[0] = integers[1] = integers[2] = -5;
    ASSERT_EQ(gradcube_allreduce(session, integers, 3, GRADCUBE_INT64, op, &request), GRADCUBE_OK);
    ASSERT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
    EXPECT_EQ(integers[2], op == GRADCUBE_SUM ? -45 : -5);
  }
  for (int dtype = GRADCUBE_FLOAT32; dtype <= GRADCUBE_UINT8; ++dtype) {
    ASSERT_EQ(gradcube_allreduce(session, integers, 3, dtype, GRADCUBE_MAX, &request), GRADCUBE_OK);
    EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  }
}

TEST_F(SessionTest, StagesForeignAndMisalignedMemory) {
  gradcube_session* session = open("job");
  std::vector<double> foreign(100, 1.5);
  std::uint64_t request = 0;
  ASSERT_EQ(
      gradcube_allreduce(session, foreign.data(), 100, GRADCUBE_FLOAT64, GRADCUBE_SUM, &request),
      GRADCUBE_OK);
  ASSERT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(foreign, std::vector<double>(100, 13.5));

  float* buffer = floats(session, 100);
  ASSERT_EQ(gradcube_wait(session, start(session, buffer + 1, 98), kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[0], 1);
  EXPECT_EQ(buffer[1], 9);
  EXPECT_EQ(buffer[98], 9);
  EXPECT_EQ(buffer[99], 1);
}

TEST_F(SessionTest, StagingIsGivenBackHoweverOftenItIsUsed) {
  gradcube_session* session = open("job");
  std::vector<float> foreign(5 << 20, 0);  // 20 MiB of the heap's 64
  for (int turn = 0; turn < 8; ++turn) {
    const std::uint64_t request = start(session, foreign.data(), foreign.size());
    ASSERT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  }
  EXPECT_NE(gradcube_alloc(session, 60 << 20), nullptr);
}

TEST_F(SessionTest, ACountOfZeroIsABarrier) {
  gradcube_session* session = open("job");
  const std::uint64_t request = start(session, nullptr, 0);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
}

TEST_F(SessionTest, TestSaysWhenARequestHasEndedAndForgetsIt) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 16);
  const std::uint64_t request = start(session, buffer, 16);
  int done = 7;
  EXPECT_EQ(gradcube_test(session, request, &done), GRADCUBE_OK);
  EXPECT_EQ(done, 0);
  daemon_.release();
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(gradcube_test(session, request, &done), GRADCUBE_OK);
    return done == 1;
  }));
  EXPECT_EQ(buffer[15], 9);
  EXPECT_EQ(gradcube_test(session, request, &done), GRADCUBE_EINVAL);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_wait(session, 0, kLong), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_wait(session, 99, kLong), GRADCUBE_EINVAL);
}

TEST_F(SessionTest, ManyMayBeInFlightTheNextIsToldToWait) {
  constexpr int kMost = 1024;
  gradcube_session* session = open("hold");
  std::vector<float*> buffers;
  std::vector<std::uint64_t> requests;
  for (int i = 0; i < kMost; ++i) {
    buffers.push_back(floats(session, 10, static_cast<float>(i)));
    requests.push_back(start(session, buffers.back(), 10));
  }
  std::uint64_t refused = 0;
  float* buffer = floats(session, 10);
  EXPECT_EQ(gradcube_allreduce(session, buffer, 10, GRADCUBE_FLOAT32, GRADCUBE_SUM, &refused),
            GRADCUBE_EAGAIN);
  daemon_.release();
  for (int i = kMost - 1; i >= 0; --i) {  // waiting out of order is allowed
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(gradcube_wait(session, requests[at], kLong), GRADCUBE_OK);
    ASSERT_EQ(buffers[at][9], static_cast<float>(9 * i));
  }
  EXPECT_EQ(gradcube_wait(session, start(session, buffer, 10), kLong), GRADCUBE_OK);
}

TEST_F(SessionTest, RingsGoRoundManyTimes) {
  gradcube_session* session = open("job");
  float* buffers[8];
  for (float*& buffer : buffers) buffer = floats(session, 16);
  for (int turn = 0; turn < 200; ++turn) {
    std::uint64_t requests[8];
    for (int i = 0; i < 8; ++i) {
      buffers[i][0] = static_cast<float>(turn + i);
      requests[i] = start(session, buffers[i], 16);
    }
    for (int i = 0; i < 8; ++i) {
      ASSERT_EQ(gradcube_wait(session, requests[i], kLong), GRADCUBE_OK);
      ASSERT_EQ(buffers[i][0], static_cast<float>(9 * (turn + i)));
    }
  }
  EXPECT_GT(daemon_.rings_heard(), 0);
}

TEST_F(SessionTest, BadArgumentsAreRefusedWithAMessageAndChangeNothing) {
  gradcube_session* session = open("job");
  float* buffer = floats(session, 64);
  std::uint64_t request = 0;
  const auto refused = [&](void* memory, std::size_t count, int dtype, int op) {
    const int code = gradcube_allreduce(session, memory, count, dtype, op, &request);
    EXPECT_GT(std::strlen(gradcube_last_error(session)), 20U);
    EXPECT_EQ(gradcube_last_code(session), code);
    return code;
  };
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_OK);
  EXPECT_EQ(refused(nullptr, 1, 0, 0), GRADCUBE_EINVAL);
  EXPECT_EQ(refused(buffer, 1, 9, 0), GRADCUBE_EINVAL);
  EXPECT_STREQ(gradcube_last_error(session),
               "invalid dtype 9: expected GRADCUBE_FLOAT32 to GRADCUBE_BYTES, or GRADCUBE_BOOL to "
               "GRADCUBE_FLOAT8_E5M2FNUZ");
  EXPECT_EQ(refused(buffer, 1, -1, 0), GRADCUBE_EINVAL);
  EXPECT_EQ(refused(buffer, 1, 0, 4), GRADCUBE_EINVAL);
  EXPECT_EQ(refused(buffer, std::numeric_limits<std::size_t>::max() / 2, 0, 0), GRADCUBE_EINVAL);
  EXPECT_EQ(refused(buffer, 65, 0, 0), GRADCUBE_EINVAL);
  EXPECT_EQ(refused(buffer + 4096, 1, 0, 0), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_allreduce(session, buffer, 1, GRADCUBE_FLOAT32, GRADCUBE_SUM, nullptr),
            GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_allreduce(nullptr, buffer, 1, GRADCUBE_FLOAT32, GRADCUBE_SUM, &request),
            GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_test(session, 1, nullptr), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_rank(nullptr), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_wait(session, start(session, buffer, 64), kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[63], 9);
}

TEST_F(SessionTest, ABufferInFlightIsNotTakenTwice) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 64);
  const std::uint64_t first = start(session, buffer, 64);
  std::uint64_t second = 0;
  EXPECT_EQ(gradcube_allreduce(session, buffer + 16, 16, GRADCUBE_FLOAT32, GRADCUBE_SUM, &second),
            GRADCUBE_EINVAL);
  EXPECT_NE(std::string(gradcube_last_error(session)).find("a collective or message in flight"),
            std::string::npos);
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, first, kLong), GRADCUBE_OK);
}

TEST_F(SessionTest, AFullHeapSaysSo) {
  gradcube_session* session = open("job");
  EXPECT_EQ(gradcube_alloc(session, 65 << 20), nullptr);
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_ENOMEM);
  EXPECT_NE(std::string(gradcube_last_error(session)).find("GRADCUBE_HEAP"), std::string::npos);
  ASSERT_NE(gradcube_alloc(session, 64 << 20), nullptr);
  std::vector<float> foreign(100);
  std::uint64_t request = 0;
  EXPECT_EQ(
      gradcube_allreduce(session, foreign.data(), 100, GRADCUBE_FLOAT32, GRADCUBE_SUM, &request),
      GRADCUBE_ENOMEM);
}

TEST_F(SessionTest, MemoryFreedInFlightIsNotReusedBeforeTheEnd) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 1024);
  const std::uint64_t request = start(session, buffer, 1024);
  gradcube_free(session, buffer);
  EXPECT_NE(gradcube_alloc(session, 4096), buffer);
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(gradcube_alloc(session, 4096), buffer);
}

TEST_F(SessionTest, MemoryFreedTwiceInFlightBelongsToItsNextOwnerAlone) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 1024);
  const std::uint64_t request = start(session, buffer, 1024);
  gradcube_free(session, buffer);
  gradcube_free(session, buffer);
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_EINVAL);
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(gradcube_alloc(session, 4096), buffer);
  // The end of another request must not free it again.
  float* other = floats(session, 10);
  EXPECT_EQ(gradcube_wait(session, start(session, other, 10), kLong), GRADCUBE_OK);
  EXPECT_NE(gradcube_alloc(session, 4096), buffer);
}

TEST_F(SessionTest, ClosingIsAnOrderlyLeaveAndNullIsAllowed) {
  close(open("job"));
  gradcube_close(nullptr);
  EXPECT_TRUE(eventually([&] { return daemon_.orderly_leaves() == 1; }));
  EXPECT_EQ(daemon_.deaths(), 0);
}

TEST_F(SessionTest, AfterLeavingMemoryIsStillThereAndCollectivesAreRefused) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 1000, 3);
  const std::uint64_t request = start(session, buffer, 1000);
  gradcube_leave(session);
  EXPECT_TRUE(eventually([&] { return daemon_.orderly_leaves() == 1; }));
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_EINVAL);
  buffer[999] = 4;
  EXPECT_EQ(buffer[0], 3);
  std::uint64_t refused = 0;
  EXPECT_EQ(gradcube_allreduce(session, buffer, 1, GRADCUBE_FLOAT32, GRADCUBE_SUM, &refused),
            GRADCUBE_EINVAL);
  gradcube_free(session, buffer);
}

TEST_F(SessionTest, SessionsOfOneProcessAreIndependent) {
  gradcube_session* held = open("hold");
  gradcube_session* other = open("job");
  float* waiting = floats(held, 100, 1);
  float* buffer = floats(other, 100, 2);
  const std::uint64_t first = start(held, waiting, 100);
  EXPECT_EQ(gradcube_wait(other, start(other, buffer, 100), kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[99], 18);
  close(other);
  daemon_.release();
  EXPECT_EQ(gradcube_wait(held, first, kLong), GRADCUBE_OK);
  EXPECT_EQ(waiting[99], 9);
}

TEST_F(SessionTest, PollLooksForTheTimeGivenAndAsksTheDaemonNothing) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  int done = 1;
  EXPECT_EQ(gradcube_poll(session, request, 20, &done), GRADCUBE_OK);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(daemon_.inquiries(), 0);
  daemon_.release();
  EXPECT_EQ(gradcube_poll(session, request, -1, &done), GRADCUBE_OK);
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace gradcube::trainer
