// A listening socket: who it is for, and clients that wait there, also where the process may open
// no file more.

#include "dataplane/sockets/client_listener.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "control/base/descriptor.h"
#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

constexpr auto kForEver = std::chrono::hours(1);

// UndefinedBehaviorSanitizer opens a pipe to look at an object's type, and takes the failure for a
// wrong type.
#ifdef __has_feature
constexpr bool kTakesDescriptors = __has_feature(undefined_behavior_sanitizer);
#else
constexpr bool kTakesDescriptors = false;
#endif

// While it lives, this process can open no file.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const control::Descriptor next(dup(STDIN_FILENO));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

// A client's socket, or -1.
int connect_to(const std::filesystem::path& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return socket;
  const int error = errno;
  close(socket);
  errno = error;
  return -1;
}

void ignored(const Accepted& client) { close(client.socket); }

class ClientListeners : public testing::Test {
 protected:
  ClientListeners() {
    std::string name = std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory");
    directory_ = name;
  }
  ~ClientListeners() override { std::filesystem::remove_all(directory_); }

  void listen(ControlLoop::Clock::duration pause) {
    listener_.emplace(
        loop_, directory_ / "s", SOCK_STREAM,
        [this](const Accepted& client) { taken_.emplace_back(client.socket); }, AllowedUsers(),
        pause);
  }
  control::Descriptor client() const {
    control::Descriptor socket(connect_to(directory_ / "s"));
    EXPECT_TRUE(socket.valid());
    return socket;
  }
  // Returns how often the loop has called anything beside its ticks.
  std::uint64_t calls_in(unsigned ticks) {
    const std::uint64_t before = loop_.steps().steps;
    loop_.on_tick([this, left = ticks]() mutable {
      if (--left == 0) loop_.stop();
    });
    loop_.run();
    return loop_.steps().steps - before - ticks;
  }

  std::filesystem::path directory_;
  ControlLoop loop_;
  std::vector<control::Descriptor> taken_;
  std::optional<ClientListener> listener_;
};

TEST_F(ClientListeners, TellWhoHasConnected) {
  std::vector<Accepted> clients;
  const ClientListener listener(loop_, directory_ / "s", SOCK_STREAM,
                                [&](const Accepted& one) { clients.push_back(one); });
  const control::Descriptor connected = client();
  calls_in(2);
  ASSERT_EQ(clients.size(), 1U);
  EXPECT_EQ(clients[0].pid, getpid());
  EXPECT_EQ(clients[0].uid, geteuid());
  EXPECT_EQ(clients[0].standing, Standing::owner);
  close(clients[0].socket);
}

TEST_F(ClientListeners, HaveASocketForTheirOwnUserAloneUnlessThereAreOthers) {
  struct stat facts {};
  const ClientListener own(loop_, directory_ / "own", SOCK_STREAM, ignored);
  ASSERT_EQ(stat((directory_ / "own").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  const ClientListener shared(loop_, directory_ / "shared", SOCK_STREAM, ignored,
                              AllowedUsers({"12345"}, {}));
  ASSERT_EQ(stat((directory_ / "shared").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0666u);
}

TEST_F(ClientListeners, RemoveTheirSocket) {
  { const ClientListener listener(loop_, directory_ / "s", SOCK_STREAM, ignored); }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "s"));
}

TEST_F(ClientListeners, LeaveTheSocketOfAnotherDaemonInItsPlace) {
  auto old = std::make_unique<ClientListener>(loop_, directory_ / "s", SOCK_STREAM, ignored);
  std::filesystem::remove(directory_ / "s");
  const ClientListener fresh(loop_, directory_ / "s", SOCK_STREAM, ignored);
  old.reset();
  const int client = connect_to(directory_ / "s");
  EXPECT_GE(client, 0);
  close(client);
}

TEST_F(ClientListeners, CanBeConnectedToFromTheMomentOnAtWhichTheyAreThere) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> looks = false;
    int error = ENOENT;
    std::jthread client([&](const std::stop_token& end) {
      for (; error == ENOENT && !end.stop_requested(); looks = true) {
        const int socket = connect_to(directory_ / "s");
        error = socket < 0 ? errno : 0;
        if (socket >= 0) close(socket);
      }
    });
    while (!looks) std::this_thread::yield();
    const ClientListener listener(loop_, directory_ / "s", SOCK_STREAM, ignored);
    client.join();
    ASSERT_EQ(error, 0) << std::strerror(error);
  }
}

TEST_F(ClientListeners, SayThatAPathIsTooLong) {
  try {
    const ClientListener listener(loop_, directory_ / std::string(200, 'x'), SOCK_STREAM, ignored);
    FAIL();
  } catch (const control::SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("GRADCUBE_RUN"), std::string::npos);
  }
}

TEST_F(ClientListeners, TakeAllThatWait) {
  listen(kForEver);
  std::vector<control::Descriptor> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(client());
  EXPECT_EQ(calls_in(3), 2U) << "a part of them in each round";
  EXPECT_EQ(taken_.size(), 20U);
}

TEST_F(ClientListeners, DoNotTurnForNothingWhileThereIsNoDescriptor) {
  if (kTakesDescriptors) GTEST_SKIP() << "the sanitizer takes descriptors of its own";
  listen(kForEver);
  const control::Descriptor waiting = client();
  const NoDescriptors none;
  EXPECT_EQ(calls_in(5), 1U);
  EXPECT_TRUE(taken_.empty());
}

TEST_F(ClientListeners, TakeThoseThatWaitedOnceThereAreDescriptors) {
  if (kTakesDescriptors) GTEST_SKIP() << "the sanitizer takes descriptors of its own";
  listen(std::chrono::nanoseconds(1));
  const control::Descriptor waiting = client();
  {
    const NoDescriptors none;
    EXPECT_EQ(calls_in(3), 6U) << "each attempt, and the end of the pause after it";
    EXPECT_TRUE(taken_.empty());
  }
  calls_in(2);
  EXPECT_EQ(taken_.size(), 1U);
}

}  // namespace
}  // namespace gradcube::dataplane
