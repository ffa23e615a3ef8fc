// Sessions in a child made by fork(): refused there, unharmed in the parent.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/unit/trainer/hub_fixture.h"
#include "tests/unit/trainer/session_fixture.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/private_in_child.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::trainer {
namespace {

// What `call` returns in a forked child; "" when the child does not come to its end. The parent
// does `meanwhile` before the child begins.
std::string in_child(const std::function<std::string()>& call,
                     const std::function<void()>& meanwhile = {}) {
  int ends[2];
  int begin[2];
  if (::pipe(ends) != 0 || ::pipe(begin) != 0) return "";
  const pid_t child = ::fork();
  ::close(begin[child == 0 ? 1 : 0]);
  if (child == 0) {
    char nothing = 0;
    while (::read(begin[0], &nothing, 1) < 0 && errno == EINTR) continue;
    const std::string text = call();
    const bool written =
        ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  if (meanwhile) meanwhile();
  ::close(begin[1]);
  ::close(ends[1]);
  std::string text;
  char part[512];
  ssize_t bytes = 0;
  while ((bytes = ::read(ends[0], part, sizeof(part))) > 0 || (bytes < 0 && errno == EINTR)) {
    if (bytes > 0) text.append(part, static_cast<std::size_t>(bytes));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with " << status;
  return text;
}

// This process's open descriptors whose files have a name that begins with `kind`.
std::ptrdiff_t open_descriptors(const std::string& kind) {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::count_if(begin(all), end(all), [&](const auto& descriptor) {
    std::error_code closed;  // the one that lists them
    return std::filesystem::read_symlink(descriptor, closed).string().starts_with(kind);
  });
}

// Whether a child was made that came to its end well.
bool ended_well(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

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

TEST_F(Fork, AChildHasNoneOfTheSessionsDescriptors) {
  gradcube_session* session = open("job");
  float* buffer = floats(session, 100);
  ASSERT_GE(gradcube_event_fd(session), 0);
  ASSERT_EQ(gradcube_wait(session, start(session, buffer, 100), kLong), GRADCUBE_OK);
  const std::ptrdiff_t sockets = open_descriptors("socket:");
  const std::ptrdiff_t memories = open_descriptors("/memfd:");
  EXPECT_EQ(in_child([&] {
              return std::to_string(sockets - open_descriptors("socket:")) + " " +
                     std::to_string(memories - open_descriptors("/memfd:")) + " " +
                     std::to_string(open_descriptors("anon_inode:"));
            }),
            "2 1 0");
  ASSERT_EQ(gradcube_wait(session, start(session, buffer, 100), kLong), GRADCUBE_OK);
  EXPECT_EQ(daemon_.deaths(), 0);
}

TEST_F(Fork, AParentsDeathIsSeenAtItsSocketThoughItsChildLives) {
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    gradcube_session* session = nullptr;
    if (gradcube_open(socket_.c_str(), "job", nullptr, &session) != GRADCUBE_OK) ::_exit(1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(hold[1]);
      char nothing = 0;
      while (::read(hold[0], &nothing, 1) < 0 && errno == EINTR) continue;
    }
    ::_exit(child < 0 ? 1 : 0);
  }
  ::close(hold[0]);
  EXPECT_TRUE(ended_well(parent));
  EXPECT_TRUE(eventually([&] { return daemon_.deaths() == 1; }));
  ::close(hold[1]);
}

// The child is only there to have a limit of its own. A sanitizer opens files to look at an object
// of a class with virtual functions, as the fixture is.
TEST_F(Fork, AChildThatMayOpenTooFewFilesIsNotAdmittedAndSoHarmsNoJob) {
  EXPECT_EQ(in_child([socket = socket_] {
              rlimit limit{};
              ::getrlimit(RLIMIT_NOFILE, &limit);
              gradcube_session* session = nullptr;
              int code = GRADCUBE_ESYSTEM;
              int failures = -1;
              for (limit.rlim_cur = 3; code == GRADCUBE_ESYSTEM; ++limit.rlim_cur, ++failures) {
                ::setrlimit(RLIMIT_NOFILE, &limit);
                code = gradcube_open(socket.c_str(), "job", nullptr, &session);
              }
              gradcube_close(session);
              return std::to_string(code) + (failures > 3 ? " after failures" : " at once");
            }),
            "0 after failures");
  EXPECT_TRUE(eventually([&] { return daemon_.orderly_leaves() == 1; }));
  EXPECT_EQ(daemon_.deaths(), 0);
}

gradcube_session* session_at_exit = nullptr;

// A handler of exit(), which runs after the objects of the thread that exits were destroyed. Memory
// that belonged to them is another's by then.
void fail_at_exit() {
  std::vector<std::string> others;
  for (std::size_t bytes = 16; bytes <= 1024; bytes += 4) others.emplace_back(bytes, 'x');
  const bool failed = gradcube_merge_layers(-1, 0, 0, nullptr, 0, nullptr) == GRADCUBE_EINVAL &&
                      gradcube_last_code(nullptr) == GRADCUBE_EINVAL &&
                      *gradcube_last_error(nullptr) != '\0' &&
                      gradcube_wait(session_at_exit, 98, 0) == GRADCUBE_EINVAL &&
                      std::strstr(gradcube_last_error(session_at_exit), "request 98") != nullptr;
  const bool are_whole = std::all_of(others.begin(), others.end(), [](const std::string& other) {
    return other == std::string(other.size(), 'x');
  });
  ::_exit(failed && are_whole ? 0 : 1);
}

// The child is only there to exit.
TEST_F(Fork, AHandlerOfExitMayMakeCallsAndIsToldWhyTheyFail) {
  in_child([&] {
    gradcube_session* closed = nullptr;
    gradcube_open(socket_.c_str(), "job", nullptr, &closed);
    gradcube_wait(closed, 97, 0);
    gradcube_close(closed);
    gradcube_open(std::string(200, 'x').c_str(), "job", nullptr, &closed);
    gradcube_open(socket_.c_str(), "job", nullptr, &session_at_exit);
    if (std::atexit(&fail_at_exit) == 0) std::exit(3);
    return std::string();
  });
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
