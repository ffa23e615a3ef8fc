// Clients that wait at a listening socket where the process may open no file more.

#include "dataplane/sockets/client_listener.h"

#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "control/base/descriptor.h"

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
        [this](const UnixListener::Accepted& client) { taken_.emplace_back(client.socket); },
        AllowedUsers(), pause);
  }
  control::Descriptor client() const {
    control::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (directory_ / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
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
