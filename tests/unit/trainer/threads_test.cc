// One session, many threads. Also run under ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <poll.h>
#include <pthread.h>
#include <random>
#include <string>
#include <thread>

#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {
namespace {

// Whether what is written at `address` shows in other processes that map the same file.
bool is_shared(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t used = 0;
    const std::uintptr_t begin = std::stoull(line, &used, 16);
    const std::uintptr_t end = std::stoull(line.substr(used + 1), &used, 16);
    if (begin <= at && at < end) return line.substr(line.find(' ') + 1, 4).back() == 's';
  }
  return false;
}

class Threads : public SessionTest {
 protected:
  // Ends when all have: jthreads join.
  template <typename Call>
  static void run(unsigned count, const Call& call) {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < count; ++i) threads.emplace_back([&call, i] { call(i); });
  }

  // Submits and waits in one of several ways until something fails; returns the code. `turns` at
  // most.
  int work(gradcube_session* session, unsigned thread, int turns) {
    std::minstd_rand random(thread + 1);
    std::vector<float> foreign(100);
    for (int turn = 0; turn < turns; ++turn) {
      float* shared = floats(session, 1 + random() % 1000);
      float* buffer = random() % 2 == 0 ? shared : foreign.data();
      buffer[0] = static_cast<float>(thread);
      std::uint64_t request = 0;
      int code = gradcube_allreduce(session, buffer, 1, GRADCUBE_FLOAT32, GRADCUBE_SUM, &request);
      if (code == GRADCUBE_OK) code = finish(session, request, random() % 3);
      if (code != GRADCUBE_OK) return code;
      EXPECT_EQ(buffer[0], static_cast<float>(9 * thread));
      gradcube_free(session, shared);
    }
    return GRADCUBE_OK;
  }

  static int finish(gradcube_session* session, std::uint64_t request, unsigned way) {
    if (way == 0) return gradcube_wait(session, request, kLong);
    for (;;) {
      int done = 0;
      const int code = way == 1 ? gradcube_poll(session, request, 2, &done)
                                : gradcube_test(session, request, &done);
      if (done != 0 || code != GRADCUBE_OK) return code;
    }
  }
};

TEST_F(Threads, SubmitWaitAllocateAndFreeSideBySide) {
  for (const char* job : {"job", "slow"}) {
    gradcube_session* session = open(job);
    run(6, [&](unsigned thread) {
      EXPECT_EQ(work(session, thread, 100), GRADCUBE_OK) << gradcube_last_error(session);
    });
  }
}

TEST_F(Threads, DoTheSameWhileAnotherPollsTheEventDescriptor) {
  gradcube_session* session = open("slow");
  const int fd = gradcube_event_fd(session);
  run(4, [&](unsigned thread) {
    if (thread != 0) {
      EXPECT_EQ(work(session, thread, 50), GRADCUBE_OK) << gradcube_last_error(session);
      return;
    }
    float* buffer = floats(session, 16);
    for (int turn = 0; turn < 20; ++turn) {
      const std::uint64_t request = start(session, buffer, 16);
      int done = 0;
      while (done == 0) {
        pollfd waiting{fd, POLLIN, 0};
        ASSERT_EQ(::poll(&waiting, 1, kLong), 1) << "a wake-up was lost";
        ASSERT_EQ(gradcube_test(session, request, &done), GRADCUBE_OK);
      }
    }
  });
}

// The thread that looks silences the doorbell, and may take the end that another sleeps for.
TEST_F(Threads, AWaiterIsWokenWhenAnotherThreadTakesTheEndOfItsRequest) {
  gradcube_session* session = open("job");
  ASSERT_GE(gradcube_event_fd(session), 0);
  std::atomic<bool> finished{false};
  std::thread waiter([&] {
    float* buffer = floats(session, 16, 0);
    for (int turn = 0; turn < 2000; ++turn) {
      EXPECT_EQ(gradcube_wait(session, start(session, buffer, 16), kLong), GRADCUBE_OK);
    }
    finished = true;
  });
  constexpr std::uint64_t kNone = 1'000'000;
  int done = 0;
  while (!finished) EXPECT_EQ(gradcube_test(session, kNone, &done), GRADCUBE_EINVAL);
  waiter.join();
}

TEST_F(Threads, AllWaitersAreServedInWhateverOrderTheirRequestsEnd) {
  constexpr unsigned kThreads = 16;
  gradcube_session* session = open("backwards");
  std::vector<float*> buffers;
  std::vector<std::uint64_t> requests;
  for (unsigned i = 0; i < kThreads; ++i) {
    buffers.push_back(floats(session, 10));
    requests.push_back(start(session, buffers.back(), 10));
  }
  std::atomic<unsigned> begun{0};
  std::thread releaser([&] {
    EXPECT_TRUE(eventually([&] { return begun == kThreads; }));
    ::usleep(20'000);
    daemon_.release();
  });
  run(kThreads, [&](unsigned i) {
    ++begun;
    EXPECT_EQ(gradcube_wait(session, requests[i], kLong), GRADCUBE_OK);
    EXPECT_EQ(buffers[i][9], 9);
  });
  releaser.join();
}

TEST_F(Threads, AWaiterThatGivesUpHandsTheWatchToAnother) {
  gradcube_session* session = open("hold");
  const std::uint64_t first = start(session, floats(session, 10), 10);
  const std::uint64_t second = start(session, floats(session, 10), 10);
  std::thread leader([&] {
    int done = 1;
    EXPECT_EQ(gradcube_poll(session, first, 50, &done), GRADCUBE_OK);
    EXPECT_EQ(done, 0);
    daemon_.release();
  });
  ::usleep(10'000);  // the other thread most likely sleeps in poll() by now
  EXPECT_EQ(gradcube_wait(session, second, kLong), GRADCUBE_OK);
  leader.join();
}

TEST_F(Threads, EachKeepsToItsOwnTimeout) {
  gradcube_session* session = open("hold");
  const std::uint64_t first = start(session, floats(session, 10), 10);
  const std::uint64_t second = start(session, floats(session, 10), 10);
  std::thread patient([&] { EXPECT_EQ(gradcube_wait(session, first, kLong), GRADCUBE_OK); });
  ::usleep(10'000);
  int done = 1;
  EXPECT_EQ(gradcube_poll(session, second, 20, &done), GRADCUBE_OK);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(gradcube_wait(session, second, 20), GRADCUBE_ETIMEDOUT);
  EXPECT_EQ(gradcube_last_error(session), std::string("not done after 40 ms: ") + kReport + "2");
  daemon_.release();
  patient.join();
}

TEST_F(Threads, SeveralThatTimeOutAtOnceGetTheReportsAboutTheirOwnRequests) {
  gradcube_session* session = open("hold");
  std::vector<std::uint64_t> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(start(session, floats(session, 10), 10));
  run(8, [&](unsigned i) {
    EXPECT_EQ(gradcube_wait(session, requests[i], 20), GRADCUBE_ETIMEDOUT);
    EXPECT_EQ(gradcube_last_error(session),
              std::string("not done after 20 ms: ") + kReport + std::to_string(requests[i]));
  });
}

TEST_F(Threads, OneEndIsReportedToOneOfThoseWhoWaitForIt) {
  gradcube_session* session = open("hold");
  const std::uint64_t request = start(session, floats(session, 10), 10);
  std::atomic<int> reported{0};
  std::thread releaser([this] {
    ::usleep(20'000);
    daemon_.release();
  });
  run(4, [&](unsigned) {
    const int code = gradcube_wait(session, request, kLong);
    EXPECT_TRUE(code == GRADCUBE_OK || code == GRADCUBE_EINVAL) << code;
    if (code == GRADCUBE_OK) ++reported;
  });
  releaser.join();
  EXPECT_EQ(reported, 1);
}

TEST_F(Threads, LeavingEndsTheWaitsOfOthers) {
  gradcube_session* session = open("hold");
  const std::uint64_t request = start(session, floats(session, 10), 10);
  std::thread leaver([&] {
    ::usleep(20'000);
    gradcube_leave(session);
  });
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_EINVAL);
  leaver.join();
}

TEST_F(Threads, FailuresAreKeptPerThread) {
  gradcube_session* session = open("job");
  EXPECT_EQ(gradcube_wait(session, 98, 0), GRADCUBE_EINVAL);
  const std::string own = gradcube_last_error(session);
  std::thread([&] {
    EXPECT_EQ(gradcube_last_code(session), GRADCUBE_OK);
    EXPECT_STREQ(gradcube_last_error(session), "");
    EXPECT_EQ(gradcube_alloc(session, 65 << 20), nullptr);
    EXPECT_EQ(gradcube_last_code(session), GRADCUBE_ENOMEM);
  }).join();
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_last_error(session), own);
  // A thread that may get the ended one's id still begins without a failure.
  std::thread([&] { EXPECT_EQ(gradcube_last_code(session), GRADCUBE_OK); }).join();
}

TEST_F(Threads, ASignalEndsThePollOfTheThreadThatSleepsInTheKernel) {
  gradcube_session* session = open("hold");
  const std::uint64_t request = start(session, floats(session, 10), 10);
  struct sigaction nothing {};
  struct sigaction before {};
  nothing.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &nothing, &before), 0);
  std::atomic<bool> back{false};
  std::thread poller([&] {
    int done = 1;
    EXPECT_EQ(gradcube_poll(session, request, kLong, &done), GRADCUBE_OK);
    EXPECT_EQ(done, 0);
    back = true;
  });
  EXPECT_TRUE(eventually([&] {
    ::pthread_kill(poller.native_handle(), SIGUSR1);
    return back.load();
  }));
  poller.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(Threads, AnAbortEndsEveryWaitAtOnceAndTellsTheDaemon) {
  gradcube_session* session = open("hold");
  std::vector<std::uint64_t> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(start(session, floats(session, 10), 10));
  std::atomic<unsigned> begun{0};
  std::thread aborter([&] {
    EXPECT_TRUE(eventually([&] { return begun == 8; }));
    ::usleep(20'000);
    EXPECT_EQ(gradcube_abort(session), GRADCUBE_OK);
  });
  run(8, [&](unsigned i) {
    ++begun;
    EXPECT_EQ(gradcube_wait(session, requests[i], kLong), GRADCUBE_EABORTED);
    EXPECT_STREQ(gradcube_last_error(session),
                 "gradcube_abort() ended this trainer's job: open a new session");
  });
  aborter.join();
  EXPECT_TRUE(eventually([&] { return daemon_.aborts() == 1; }));
  EXPECT_EQ(gradcube_abort(session), GRADCUBE_OK) << "a second one changes nothing";
  std::uint64_t request = 0;
  EXPECT_EQ(gradcube_barrier(session, &request), GRADCUBE_EABORTED);
  close(session);
  EXPECT_EQ(daemon_.aborts(), 1);
  EXPECT_EQ(daemon_.orderly_leaves(), 0);
}

TEST_F(Threads, AnAbortAmidAllOtherCallsEndsThemAll) {
  for (int round = 0; round < 20; ++round) {
    gradcube_session* session = open(round % 2 == 0 ? "job" : "slow");
    std::atomic<int> aborted{0};
    run(5, [&](unsigned thread) {
      if (thread == 0) {
        ::usleep(static_cast<unsigned>(1000 * round));
        EXPECT_EQ(gradcube_abort(session), GRADCUBE_OK);
        return;
      }
      EXPECT_EQ(work(session, thread, 1'000'000), GRADCUBE_EABORTED)
          << gradcube_last_error(session);
      ++aborted;
    });
    EXPECT_EQ(aborted, 4);
    EXPECT_NE(gradcube_alloc(session, 64), nullptr) << "memory stays as it is";
    close(session);
  }
}

// What the caller writes from then on must not show in what was submitted.
TEST_F(Threads, TheHeapIsNotSharedAnyMoreWhenAnAbortReturnsHoweverBusyOthersAreInTheSession) {
  for (int round = 0; round < 100; ++round) {
    gradcube_session* session = open("hold");
    float* buffer = floats(session, 10);
    const std::uint64_t request = start(session, buffer, 10);
    ASSERT_TRUE(is_shared(buffer));
    std::atomic<unsigned> begun{0};
    run(4, [&](unsigned thread) {
      ++begun;
      if (thread < 2) {
        EXPECT_TRUE(eventually([&] { return begun == 4; }));
        EXPECT_EQ(gradcube_abort(session), GRADCUBE_OK);
        EXPECT_FALSE(is_shared(buffer)) << "in round " << round;
        return;
      }
      int done = 0;
      while (gradcube_test(session, request, &done) == GRADCUBE_OK) continue;
    });
    close(session);
  }
}

TEST_F(Threads, OneThatIsCancelledInAWaitEndsAfterItAndTheSessionGoesOn) {
  struct Wait {
    gradcube_session* session;
    std::uint64_t request;
    int code;
  };
  gradcube_session* session = open("hold");
  Wait wait{session, start(session, floats(session, 10), 10), GRADCUBE_OK};
  const auto cancelled = [](void* argument) -> void* {
    Wait& its = *static_cast<Wait*>(argument);
    ::pthread_cancel(::pthread_self());
    its.code = gradcube_wait(its.session, its.request, 20);
    ::pthread_testcancel();
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(&thread, nullptr, cancelled, &wait), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(wait.code, GRADCUBE_ETIMEDOUT);
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, wait.request, kLong), GRADCUBE_OK);
}

TEST_F(Threads, WhatEndedBeforeAnAbortKeepsItsResult) {
  gradcube_session* session = open("job");
  float* buffer = floats(session, 10);
  const std::uint64_t request = start(session, buffer, 10);
  ASSERT_EQ(gradcube_wait(session, start(session, floats(session, 10), 10), kLong), GRADCUBE_OK);
  EXPECT_EQ(gradcube_abort(session), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[9], 9);
}

}  // namespace
}  // namespace gradcube::trainer
