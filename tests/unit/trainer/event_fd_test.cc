// Programs that wait in poll() of their own.
#include <cstdio>
#include <poll.h>
#include <thread>

#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {
namespace {

class EventFd : public SessionTest {
 protected:
  static bool readable(int fd, int timeout_ms = 0) {
    pollfd waiting{fd, POLLIN, 0};
    return ::poll(&waiting, 1, timeout_ms) == 1;
  }
};

TEST_F(EventFd, RequestsCanBeDrivenByPollOnItAlone) {
  gradcube_session* session = open("slow");
  const int fd = gradcube_event_fd(session);
  ASSERT_GE(fd, 0) << gradcube_last_error(session);
  EXPECT_EQ(gradcube_event_fd(session), fd) << "one descriptor per session";
  std::vector<float*> buffers;
  std::vector<std::uint64_t> open_requests;
  for (int i = 0; i < 8; ++i) {
    buffers.push_back(floats(session, 10));
    open_requests.push_back(start(session, buffers.back(), 10));
  }
  int ended = 0;
  while (ended < 200) {
    ASSERT_TRUE(readable(fd, kLong)) << "a wake-up was lost after " << ended;
    for (std::size_t i = 0; i < open_requests.size(); ++i) {
      int done = 0;
      ASSERT_EQ(gradcube_test(session, open_requests[i], &done), GRADCUBE_OK);
      if (done == 0) continue;
      ASSERT_EQ(buffers[i][9], 9);
      buffers[i][9] = 1;
      open_requests[i] = start(session, buffers[i], 10);
      ++ended;
    }
  }
}

// The daemon ends what was in flight as it does for the others, and that may come first.
TEST_F(EventFd, OfWhatAnAbortHasEndedSaysThatItWasAborted) {
  gradcube_session* session = open("fail");
  const int fd = gradcube_event_fd(session);
  const std::uint64_t request = start(session, floats(session, 10), 10);
  ASSERT_TRUE(readable(fd, kLong));  // it has failed, and nobody has looked
  EXPECT_EQ(gradcube_abort(session), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_EABORTED);
  EXPECT_STREQ(gradcube_last_error(session),
               "gradcube_abort() ended this trainer's job: open a new session");
}

TEST_F(EventFd, IsReadableWhileAnEndIsUnreportedAndNotAfter) {
  gradcube_session* session = open("hold");
  const int fd = gradcube_event_fd(session);
  const std::uint64_t first = start(session, floats(session, 10), 10);
  const std::uint64_t second = start(session, floats(session, 10), 10);
  int done = 0;
  EXPECT_EQ(gradcube_test(session, first, &done), GRADCUBE_OK);
  EXPECT_FALSE(readable(fd, 20));
  daemon_.release();
  ASSERT_TRUE(readable(fd, kLong));
  EXPECT_EQ(gradcube_wait(session, first, kLong), GRADCUBE_OK);
  EXPECT_TRUE(readable(fd, kLong)) << "the second has ended, too";
  EXPECT_EQ(gradcube_wait(session, second, kLong), GRADCUBE_OK);
  EXPECT_FALSE(readable(fd, 20)) << "also if the doorbell rings late";
}

TEST_F(EventFd, ATimeoutNamesTheTimeSinceTheSubmission) {
  gradcube_session* session = open("hold");
  ASSERT_GE(gradcube_event_fd(session), 0);
  const std::uint64_t request = start(session, floats(session, 10), 10);
  ::usleep(30'000);  // in which the program sleeps in its own poll()
  EXPECT_EQ(gradcube_wait(session, request, 0), GRADCUBE_ETIMEDOUT);
  int waited = 0;
  ASSERT_EQ(std::sscanf(gradcube_last_error(session), "not done after %d ms: ", &waited), 1)
      << gradcube_last_error(session);
  EXPECT_GE(waited, 30);
}

TEST_F(EventFd, KnowsOfAnEndThatCameBeforeItWasAskedFor) {
  gradcube_session* session = open("job");
  const std::uint64_t request = start(session, floats(session, 10), 10);
  int done = 0;
  ASSERT_TRUE(eventually([&] { return daemon_.heard().submission.request == request; }));
  ::usleep(20'000);  // until the daemon has completed it, and did not ring
  EXPECT_TRUE(readable(gradcube_event_fd(session), kLong));
  EXPECT_EQ(gradcube_test(session, request, &done), GRADCUBE_OK);
  EXPECT_EQ(done, 1);
}

TEST_F(EventFd, TellsOfAnEndThatAnotherThreadsWaitTookFromTheRing) {
  gradcube_session* session = open("backwards");
  const int fd = gradcube_event_fd(session);
  const std::uint64_t watched = start(session, floats(session, 10), 10);
  const std::uint64_t waited = start(session, floats(session, 10), 10);
  std::thread waiter([&] { EXPECT_EQ(gradcube_wait(session, waited, kLong), GRADCUBE_OK); });
  daemon_.release();
  waiter.join();
  ASSERT_TRUE(readable(fd, kLong));
  int done = 0;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(gradcube_test(session, watched, &done), GRADCUBE_OK);
    return done == 1;
  }));
}

TEST_F(EventFd, BecomesReadableWhenTheDaemonDiesAndWhenTheJobIsAborted) {
  gradcube_session* aborted = open("hold");
  gradcube_session* session = open("hold");
  const std::uint64_t request = start(session, floats(session, 10), 10);
  const int fd = gradcube_event_fd(aborted);
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(gradcube_abort(aborted), GRADCUBE_OK);
  EXPECT_TRUE(readable(fd, kLong));
  EXPECT_FALSE(readable(gradcube_event_fd(session)));
  daemon_.kill();
  EXPECT_TRUE(readable(gradcube_event_fd(session), kLong));
  int done = 0;
  EXPECT_EQ(gradcube_test(session, request, &done), GRADCUBE_ENODAEMON);
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace gradcube::trainer
