#include "dataplane/sockets/unix_listener.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

class Listener : public testing::Test {
 protected:
  Listener() {
    std::string name = std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory");
    directory_ = name;
  }
  ~Listener() override { std::filesystem::remove_all(directory_); }

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

  std::filesystem::path directory_;
};

TEST_F(Listener, TellsWhoHasConnected) {
  UnixListener listener(directory_ / "s", SOCK_STREAM);
  EXPECT_FALSE(listener.accept().has_value());
  const int client = connect_to(directory_ / "s");
  ASSERT_GE(client, 0);
  const auto accepted = listener.accept();
  ASSERT_TRUE(accepted.has_value());
  EXPECT_EQ(accepted->peer.pid, getpid());
  EXPECT_EQ(accepted->peer.uid, geteuid());
  EXPECT_EQ(accepted->standing, Standing::owner);
  close(accepted->socket);
  close(client);
}

TEST_F(Listener, HasASocketForItsOwnUserAloneUnlessThereAreOthers) {
  struct stat facts {};
  const UnixListener own(directory_ / "own", SOCK_STREAM);
  ASSERT_EQ(stat((directory_ / "own").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  const UnixListener shared(directory_ / "shared", SOCK_STREAM, AllowedUsers({"12345"}, {}));
  ASSERT_EQ(stat((directory_ / "shared").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0666u);
}

TEST_F(Listener, RemovesItsSocket) {
  { const UnixListener listener(directory_ / "s", SOCK_STREAM); }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "s"));
}

TEST_F(Listener, LeavesTheSocketOfAnotherDaemonInItsPlace) {
  auto old = std::make_unique<UnixListener>(directory_ / "s", SOCK_STREAM);
  std::filesystem::remove(directory_ / "s");
  const UnixListener fresh(directory_ / "s", SOCK_STREAM);
  old.reset();
  const int client = connect_to(directory_ / "s");
  EXPECT_GE(client, 0);
  close(client);
}

TEST_F(Listener, CanBeConnectedToFromTheMomentOnAtWhichItIsThere) {
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
    const UnixListener listener(directory_ / "s", SOCK_STREAM);
    client.join();
    ASSERT_EQ(error, 0) << std::strerror(error);
  }
}

TEST_F(Listener, SaysThatAPathIsTooLong) {
  try {
    const UnixListener listener(directory_ / std::string(200, 'x'), SOCK_STREAM);
    FAIL();
  } catch (const control::SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("GRADCUBE_RUN"), std::string::npos);
  }
}

}  // namespace
}  // namespace gradcube::dataplane
