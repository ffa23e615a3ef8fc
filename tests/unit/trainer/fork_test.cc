// Sessions in a child made by fork(): refused there, unharmed in the parent.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "tests/support/scarce_memory.h"
#include "tests/unit/trainer/forked_child.h"
#include "tests/unit/trainer/hub_fixture.h"
#include "tests/unit/trainer/session_fixture.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/private_in_child.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::trainer {
namespace {

class Fork : public SessionTest {
 protected:
  // The parent's session is whole: what was in flight ends well, and so does the next collective.
  void expect_unharmed(gradcube_session* session, float* buffer, std::uint64_t in_flight) {
    daemon_.release();
    ASSERT_EQ(gradcube_wait(session, in_flight, kLong), GRADCUBE_OK)
        << gradcube_last_error(session);
    EXPECT_EQ(buffer[99], 9);
    ASSERT_EQ(gradcube_wait(session, start(session, buffer, 100), kLong), GRADCUBE_OK)
        << gradcube_last_error(session);
    EXPECT_EQ(buffer[99], 81);
    EXPECT_EQ(daemon_.orderly_leaves(), 0);
    EXPECT_EQ(daemon_.deaths(), 0);
  }

  static std::string refusal() {
    return "this session belongs to process " + std::to_string(::getpid()) +
           "; open one in the child";
  }
};

TEST_F(Fork, AChildThatSubmitsIsRefusedAndTheParentGoesOn) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  EXPECT_EQ(in_child([&] {
              std::uint64_t own = 0;
              const int code =
                  gradcube_allreduce(session, nullptr, 0, GRADCUBE_FLOAT32, GRADCUBE_SUM, &own);
              return std::to_string(code) + gradcube_last_error(session);
            }),
            "-1" + refusal());
  expect_unharmed(session, buffer, request);
}

TEST_F(Fork, AChildThatWaitsIsRefusedAndTheParentGoesOn) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  daemon_.release();
  EXPECT_EQ(in_child([&] {
              int done = 0;
              std::string codes = std::to_string(gradcube_wait(session, request, 1000));
              codes += std::to_string(gradcube_test(session, request, &done));
              codes += std::to_string(gradcube_poll(session, request, 1000, &done));
              codes += std::to_string(gradcube_last_code(session));
              return codes + gradcube_last_error(session);
            }),
            "-1-1-1-1" + refusal());
  expect_unharmed(session, buffer, request);
}

TEST_F(Fork, AChildGetsNoMemoryAndFreesNoneOfItsParents) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  EXPECT_EQ(in_child([&] {
              gradcube_free(session, buffer);
              const void* memory = gradcube_alloc(session, 64);
              return std::string(memory == nullptr ? "none: " : "some: ") +
                     gradcube_last_error(session);
            }),
            "none: " + refusal());
  expect_unharmed(session, buffer, request);
}

TEST_F(Fork, AChildThatLeavesAndClosesDoesNotEndItsParentsMembership) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  EXPECT_EQ(in_child([&] {
              gradcube_leave(session);
              gradcube_close(session);
              return std::string("closed");
            }),
            "closed");
  expect_unharmed(session, buffer, request);
}

// The child finds the end of the collective in the rings that it shares with its parent.
TEST_F(Fork, AChildThatClosesTakesNoCompletionFromItsParent) {
  gradcube_session* session = open("job");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  // The heap's first block lies right behind the rings.
  const auto& header = *reinterpret_cast<const shared::RegionHeader*>(
      reinterpret_cast<const std::byte*>(buffer) - shared::kHeapOffset);
  ASSERT_EQ(header.magic, shared::kMagic);
  ASSERT_TRUE(eventually([&] { return header.completion_tail == 1; }));
  in_child([&] {
    gradcube_close(session);
    return std::string();
  });
  EXPECT_EQ(header.completion_head, 0U);
  expect_unharmed(session, buffer, request);
}

TEST_F(Fork, AChildCannotAbortItsParentsJob) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  EXPECT_EQ(in_child([&] {
              const std::string codes = std::to_string(gradcube_abort(session)) +
                                        std::to_string(gradcube_event_fd(session));
              return codes + gradcube_last_error(session);
            }),
            "-1-1" + refusal());
  expect_unharmed(session, buffer, request);
}

// The child has the parent's tables as they were at the fork, and none of the parent's threads.
TEST_F(Fork, AChildOfAProcessWithBusyThreadsIsRefusedAndCloses) {
  constexpr int kChildren = 50;
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  threads.emplace_back([&] {
    int done = 0;
    while (!stop) EXPECT_EQ(gradcube_poll(session, request, 20, &done), GRADCUBE_OK);
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) gradcube_free(session, gradcube_alloc(session, 64));
    });
  }
  for (int i = 0; i < kChildren; ++i) {
    EXPECT_EQ(in_child([&] {
                const int code = gradcube_wait(session, request, 1000);
                const std::string said = std::to_string(code) + gradcube_last_error(session);
                gradcube_close(session);
                return said;
              }),
              "-1" + refusal());
  }
  stop = true;
  threads.clear();
  expect_unharmed(session, buffer, request);
}

TEST_F(Fork, AChildAndItsParentWriteToMemoryOfTheirOwn) {
  gradcube_session* session = open("job");
  float* buffer = floats(session, 100000);
  const std::string said = in_child(
      [&] {
        const float found = buffer[99999];
        for (int i = 0; i < 100000; ++i) buffer[i] += 400;
        const std::string childs = in_child([&] { return std::to_string(buffer[0] += 1); });
        return std::to_string(found) + " " + childs + " " + std::to_string(buffer[0]);
      },
      [&] { std::fill_n(buffer, 100000, 2.0F); });
  EXPECT_EQ(said, "1.000000 402.000000 401.000000");
  EXPECT_EQ(std::count(buffer, buffer + 100000, 2.0F), 100000);
  EXPECT_EQ(gradcube_wait(session, start(session, buffer, 100000), kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[99999], 18);
}

TEST_F(Fork, AChildOfAThreadAndOfAParentWithSeveralSessionsHasMemoryOfItsOwn) {
  float* first = floats(open("job"), 10);
  float* second = floats(open("job"), 10, 2);
  gradcube_session* closed = open("job");
  floats(closed, 10);
  close(closed);
  std::thread([&] {
    EXPECT_EQ(in_child([&] { return std::to_string((first[9] += 5) + (second[9] += 5)); }),
              "13.000000");
  }).join();
  EXPECT_EQ(first[9] + second[9], 3);
}

// A child that finds its parent's memory in its place would answer.
TEST_F(Fork, AChildHasNoMemoryWhereTheSystemHasNoneForACopy) {
  float* buffer = floats(open("job"), 10);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit lower{std::size_t{1} << 20, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &lower), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    *static_cast<volatile float*>(buffer) = 401;
    ::_exit(0);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(buffer[0], 1);
}

// Between the two a child would have memory that its parent goes on to share.
TEST_F(Fork, AForkComesBeforeMemoryIsReplacedAndForgottenOrAfterIt) {
  const auto page = static_cast<std::size_t>(::getpagesize());
  constexpr int kOwn = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const shared =
      ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const memory = static_cast<std::byte*>(shared);
  PrivateInChild in_children(std::span(memory, page),
                             [] { return std::vector<std::span<const std::byte>>(); });
  std::string seen;
  std::atomic<bool> forks{false};
  std::thread forking;
  in_children.end([&] {
    forking = std::thread([&] {
      forks = true;
      seen = in_child([&] { return std::to_string(std::to_integer<int>(memory[0])); });
    });
    EXPECT_TRUE(eventually([&] { return forks.load(); }));
    ASSERT_EQ(::mmap(memory, page, PROT_READ | PROT_WRITE, kOwn | MAP_FIXED, -1, 0), memory);
    memory[0] = std::byte{7};
  });
  forking.join();
  EXPECT_EQ(seen, "7");
  ::munmap(shared, page);
}

TEST_F(Fork, AChildStillKnowsTheRankAndSizeOfItsParent) {
  gradcube_session* session = open("job");
  EXPECT_EQ(in_child([&] {
              return std::to_string(gradcube_rank(session)) + "/" +
                     std::to_string(gradcube_size(session));
            }),
            "7/9");
}

TEST_F(Fork, AChildMayOpenASessionOfItsOwn) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  EXPECT_EQ(in_child([&] {
              gradcube_session* own = nullptr;
              if (gradcube_open(socket_.c_str(), "job", nullptr, &own) != GRADCUBE_OK) {
                return std::string(gradcube_last_error(nullptr));
              }
              float* numbers = floats(own, 10);
              const int code = gradcube_wait(own, start(own, numbers, 10), kLong);
              const std::string result = std::to_string(code) + ": " + std::to_string(numbers[9]);
              gradcube_close(own);
              return result;
            }),
            "0: 9.000000");
  EXPECT_TRUE(eventually([&] { return daemon_.orderly_leaves() == 1; }));
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
}

TEST_F(Fork, DestructorsOfTheCppBindingInAChildLeaveTheParentAlone) {
  std::optional<gradcube::Session> session(std::in_place, "hold", socket_);
  std::optional<Buffer<float>> buffer(session->buffer<float>(100));
  std::fill(buffer->begin(), buffer->end(), 1.0F);
  auto request = session->all_reduce(buffer->span());
  EXPECT_EQ(in_child([&] {
              std::string said;
              try {
                request.wait(std::chrono::seconds(1));
              } catch (const Error& error) {
                said = std::to_string(error.code()) + error.what();
              }
              try {
                session->buffer<float>(1);
              } catch (const Error& error) {
                said += std::to_string(error.code());
              }
              buffer.reset();
              session.reset();
              return said;
            }),
            "-1" + refusal() + "-1");
  expect_unharmed(session->handle(), buffer->data(), request.number());
}

class HubFork : public HubTest {};

TEST_F(HubFork, AChildHasTheWeightsOfTheMomentOfTheFork) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::vector<float> others(100, 2);
  init(session, hub, 0);
  const auto* weights = static_cast<const float*>(gradcube_hub_weights(hub, 0));
  const float before = weights[99];
  EXPECT_EQ(in_child([&] { return std::to_string(weights[99]); },
                     [&] { wait(session, push(session, hub, 0, others.data())); }),
            std::to_string(before));
  EXPECT_NE(weights[99], before);
}

TEST_F(HubFork, AChildHasThemAlsoWhereThereWasNoMemoryToShowThemAtFirst) {
  // The list of what a fork copies has room for a power of two: one more takes memory.
  for (int others = 0; others < 15; ++others) open("job");
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::vector<float> others(100, 2);
  init(session, hub, 0);
  const void* refused = hub;
  {
    const NoMemory none;
    refused = gradcube_hub_weights(hub, 0);
  }
  EXPECT_EQ(refused, nullptr);
  const auto* weights = static_cast<const float*>(gradcube_hub_weights(hub, 0));
  ASSERT_NE(weights, nullptr);
  const float before = weights[99];
  EXPECT_EQ(in_child([&] { return std::to_string(weights[99]); },
                     [&] { wait(session, push(session, hub, 0, others.data())); }),
            std::to_string(before));
}

// The child has a copy of what knows the temporary file, and not the thread that writes it.
TEST_F(HubFork, AChildThatFreesAHubDoesNotRemoveTheCheckpointThatItsParentWrites) {
  namespace fs = std::filesystem;
  const TemporaryDirectory folder;
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  for (const std::size_t key : {0, 1, 2}) init(session, hub, key);
  ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, (folder / "model.hub").c_str(), 1), GRADCUBE_OK);
  ASSERT_TRUE(eventually([&] { return !fs::is_empty(folder.path()); }));
  EXPECT_EQ(in_child([&] {
              ::alarm(kLong / 1000);  // if it waits for that thread
              return std::to_string(gradcube_hub_free(hub, kLong));
            }),
            "-1");
  EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_OK) << gradcube_last_error(session);
  EXPECT_TRUE(fs::exists(folder / "model.hub.1.8-of-9"));
}

}  // namespace
}  // namespace gradcube::trainer
