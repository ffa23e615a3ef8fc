// What the daemon sees of a process that forks, may open too few files, or exits.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "tests/unit/trainer/forked_child.h"

namespace gradcube::trainer {
namespace {

class ForkSeenByTheDaemon : public SessionTest {};

// This process's open descriptors whose files have a name that begins with `kind`.
std::ptrdiff_t open_descriptors(const std::string& kind) {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::count_if(begin(all), end(all), [&](const auto& descriptor) {
    std::error_code closed;  // the one that lists them
    return std::filesystem::read_symlink(descriptor, closed).string().starts_with(kind);
  });
}

TEST_F(ForkSeenByTheDaemon, AChildHasNoneOfTheSessionsDescriptors) {
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

TEST_F(ForkSeenByTheDaemon, AParentsDeathIsSeenAtItsSocketThoughItsChildLives) {
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
TEST_F(ForkSeenByTheDaemon, AChildThatMayOpenTooFewFilesIsNotAdmittedAndSoHarmsNoJob) {
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
TEST_F(ForkSeenByTheDaemon, AHandlerOfExitMayMakeCallsAndIsToldWhyTheyFail) {
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

}  // namespace
}  // namespace gradcube::trainer
