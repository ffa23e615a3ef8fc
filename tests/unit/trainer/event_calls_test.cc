// How often the library asks the kernel where a program waits in poll() of its own: these calls are
// most of what it adds to such a wait. Not built with a sanitizer, which has such functions itself.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {
namespace {

struct Calls {
  int reads = 0;
  int writes = 0;
  int messages = 0;  // asked for at the session's socket
  int changes = 0;   // of what epoll waits for
  bool operator==(const Calls& other) const = default;
};

std::ostream& operator<<(std::ostream& out, const Calls& calls) {
  return out << calls.reads << " reads, " << calls.writes << " writes, " << calls.messages
             << " messages, " << calls.changes << " changes";
}

thread_local Calls calls;  // of the program's thread, without the fake daemon's

}  // namespace
}  // namespace gradcube::trainer

extern "C" {

ssize_t read(int fd, void* buffer, std::size_t bytes) {
  ++gradcube::trainer::calls.reads;
  return ::syscall(SYS_read, fd, buffer, bytes);
}

ssize_t write(int fd, const void* buffer, std::size_t bytes) {
  ++gradcube::trainer::calls.writes;
  return ::syscall(SYS_write, fd, buffer, bytes);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  ++gradcube::trainer::calls.messages;
  return ::syscall(SYS_recvmsg, fd, message, flags);
}

int epoll_ctl(int all, int what, int fd, epoll_event* event) noexcept {
  ++gradcube::trainer::calls.changes;
  return static_cast<int>(::syscall(SYS_epoll_ctl, all, what, fd, event));
}

}  // extern "C"

namespace gradcube::trainer {
namespace {

class EventCalls : public SessionTest {
 protected:
  // Of this thread, while it asks once.
  static Calls of_test(gradcube_session* session, std::uint64_t request, int is_done) {
    int done = 0;
    calls = {};
    EXPECT_EQ(gradcube_test(session, request, &done), GRADCUBE_OK);
    EXPECT_EQ(done, is_done);
    return calls;
  }

  static void await_end(int fd) {
    pollfd waiting{fd, POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, kLong), 1);
  }
};

TEST_F(EventCalls, AnEndThatIsTakenAndReportedAtOnceSilencesTheDoorbellAlone) {
  gradcube_session* session = open("job");
  const int fd = gradcube_event_fd(session);
  float* const buffer = floats(session, 10);
  for (int turn = 0; turn < 3; ++turn) {
    calls = {};
    const std::uint64_t request = start(session, buffer, 10);
    EXPECT_EQ(calls, (Calls{.changes = 1}));
    await_end(fd);
    EXPECT_EQ(of_test(session, request, 1), (Calls{.changes = 1}));
  }
}

TEST_F(EventCalls, WhatHasNotEndedLooksForMessagesOnce) {
  gradcube_session* session = open("hold");
  ASSERT_GE(gradcube_event_fd(session), 0);
  const std::uint64_t request = start(session, floats(session, 10), 10);
  EXPECT_EQ(of_test(session, request, 0), (Calls{.messages = 1}));
  daemon_.release();
}

TEST_F(EventCalls, WhatOthersTookFromTheRingAsksForNothing) {
  gradcube_session* session = open("hold");
  const int fd = gradcube_event_fd(session);
  const std::uint64_t first = start(session, floats(session, 10), 10);
  const std::uint64_t second = start(session, floats(session, 10), 10);
  daemon_.release();
  await_end(fd);
  int done = 0;
  EXPECT_TRUE(eventually([&] {  // the end of the second may come later
    return gradcube_test(session, second, &done) == GRADCUBE_OK && done == 1;
  }));
  // The eventfd alone, which has told poll() of it.
  EXPECT_EQ(of_test(session, first, 1), (Calls{.reads = 1}));
}

}  // namespace
}  // namespace gradcube::trainer
