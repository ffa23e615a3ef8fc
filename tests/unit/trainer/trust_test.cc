// Whose daemons a session is opened at.
#include "trainer/src/connection/trust.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>

#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {
namespace {

constexpr uid_t kOneUser = 65534;
constexpr uid_t kAnotherUser = 1001;

struct Outcome {
  int code;
  std::string message;
};

Outcome open_at(const char* socket) {
  gradcube_session* session = nullptr;
  const int code = gradcube_open(socket, "job", nullptr, &session);
  gradcube_close(session);
  return {code, code == GRADCUBE_OK ? "" : gradcube_last_error(nullptr)};
}

Outcome open_in(const std::string& run_directory) {
  const Environment run("GRADCUBE_RUN", run_directory);
  return open_at(nullptr);
}

// Runs `call` as another user. The kernel keeps credentials per thread; only the C library's
// setters change all threads at once.
template <typename Call>
void as_user(uid_t user, const Call& call) {
  std::thread([&] {
    ASSERT_EQ(::syscall(SYS_setresuid, -1, user, -1), 0);
    call();
  }).join();
}

bool is_root() { return ::geteuid() == 0; }

class RunDirectoryOwner : public SessionTest {};

TEST_F(RunDirectoryOwner, AnOwnDirectoryIsAccepted) {
  EXPECT_EQ(open_in(directory_.path()).code, GRADCUBE_OK);
  EXPECT_EQ(open_in(directory_.path() + "/").code, GRADCUBE_OK);
}

TEST_F(RunDirectoryOwner, ADirectoryOfRootIsAccepted) {
  EXPECT_EQ(open_in("/usr").code, GRADCUBE_ENODAEMON);
  EXPECT_EQ(open_in("/").code, GRADCUBE_ENODAEMON);
}

TEST_F(RunDirectoryOwner, ASymbolicLinkIsRefusedWithASlashBehindItToo) {
  const TemporaryDirectory other;
  const std::string link = other / "link";
  std::filesystem::create_directory_symlink(directory_.path(), link);
  for (const std::string& path : {link, link + "/", link + "/.", link + "//"}) {
    const auto [code, message] = open_in(path);
    EXPECT_EQ(code, GRADCUBE_EJOB) << path;
    EXPECT_NE(message.find("is a symbolic link"), std::string::npos) << message;
  }
}

TEST_F(RunDirectoryOwner, AFileIsRefused) {
  std::ofstream(directory_ / "file");
  const auto [code, message] = open_in(directory_ / "file");
  EXPECT_EQ(code, GRADCUBE_EJOB);
  EXPECT_NE(message.find("is not a directory"), std::string::npos) << message;
}

TEST_F(RunDirectoryOwner, ADirectoryThatOthersMayWriteToIsRefusedWithTheRemedy) {
  for (const mode_t mode : {0770, 0702, 01777}) {
    ASSERT_EQ(::chmod(directory_.path().c_str(), mode), 0);
    const auto [code, message] = open_in(directory_.path());
    EXPECT_EQ(code, GRADCUBE_EJOB) << mode;
    EXPECT_EQ(message, "the run directory " + directory_.path() +
                           " can be written to by others: set GRADCUBE_RUN to a directory to which "
                           "only you can write");
  }
}

TEST_F(RunDirectoryOwner, ADirectoryOfAnotherUserIsRefused) {
  if (!is_root()) GTEST_SKIP() << "only root can make a directory of another user";
  ASSERT_EQ(::chown(directory_.path().c_str(), kAnotherUser, -1), 0);
  const auto [code, message] = open_in(directory_.path());
  EXPECT_EQ(code, GRADCUBE_EJOB);
  EXPECT_NE(message.find(" belongs to user 1001, not to you: set GRADCUBE_RUN"), std::string::npos)
      << message;
}

TEST_F(RunDirectoryOwner, RootMayNameTheUserWhoseDirectoryItIs) {
  if (!is_root()) GTEST_SKIP() << "only root can make a directory of another user";
  ASSERT_EQ(::chown(directory_.path().c_str(), kAnotherUser, -1), 0);
  const Environment user("GRADCUBE_DAEMON_UID", "1001");
  EXPECT_EQ(open_in(directory_.path()).code, GRADCUBE_OK);
}

TEST_F(RunDirectoryOwner, AUserIdThatIsNoNumberIsRefused) {
  if (!is_root()) GTEST_SKIP() << "only root can make a directory of another user";
  ASSERT_EQ(::chown(directory_.path().c_str(), kAnotherUser, -1), 0);
  for (const char* text : {"alice", "-1", "1001 ", "99999999999"}) {
    const Environment user("GRADCUBE_DAEMON_UID", text);
    const auto [code, message] = open_in(directory_.path());
    EXPECT_EQ(code, GRADCUBE_EINVAL) << text;
    EXPECT_NE(message.find("GRADCUBE_DAEMON_UID"), std::string::npos) << message;
  }
}

// A directory that every user can make sockets in, as /tmp.
class DaemonOwner : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_root()) GTEST_SKIP() << "only root can run a daemon of another user";
    ASSERT_EQ(::chmod(directory_.path().c_str(), 01777), 0);
  }

  // Makes a daemon of `user`, at a socket to which every user may connect.
  std::unique_ptr<FakeDaemon> daemon_of(uid_t user) {
    std::unique_ptr<FakeDaemon> daemon;
    as_user(user, [&] { daemon = std::make_unique<FakeDaemon>(socket_); });
    EXPECT_EQ(::chmod(socket_.c_str(), 0666), 0);
    return daemon;
  }

  TemporaryDirectory directory_;
  Environment heap_{"GRADCUBE_HEAP", "64Mi"};
  std::string socket_ = directory_ / "server-2-1.sock";
};

TEST_F(DaemonOwner, ADaemonOfAnotherUserIsRefusedWhenItsSocketIsGiven) {
  const auto daemon = daemon_of(kAnotherUser);
  const auto [code, message] = open_at(socket_.c_str());
  EXPECT_EQ(code, GRADCUBE_EJOB);
  EXPECT_EQ(message.find("the daemon at " + socket_ + " belongs to user 1001, not to you: "), 0U)
      << message;
  EXPECT_NE(message.find("GRADCUBE_DAEMON_UID=1001"), std::string::npos) << message;
}

TEST_F(DaemonOwner, ADaemonOfAnotherUserIsRefusedWhenTheEnvironmentNamesItsSocket) {
  const auto daemon = daemon_of(kAnotherUser);
  const Environment socket("GRADCUBE_SOCKET", socket_);
  EXPECT_EQ(open_at(nullptr).code, GRADCUBE_EJOB);
}

TEST_F(DaemonOwner, ADaemonOfAnotherUserIsRefusedInAnOwnDirectory) {
  const auto daemon = daemon_of(kAnotherUser);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0700), 0);
  const auto [code, message] = open_in(directory_.path());
  EXPECT_EQ(code, GRADCUBE_EJOB);
  EXPECT_NE(message.find("the daemon at"), std::string::npos) << message;
}

TEST_F(DaemonOwner, RootMayNameTheUserOfTheDaemon) {
  const auto daemon = daemon_of(kAnotherUser);
  const Environment user("GRADCUBE_DAEMON_UID", "1001");
  EXPECT_EQ(open_at(socket_.c_str()).code, GRADCUBE_OK);
}

TEST_F(DaemonOwner, AnotherUserWhoIsNamedMakesNoDifference) {
  const auto daemon = daemon_of(kAnotherUser);
  const Environment user("GRADCUBE_DAEMON_UID", "1002");
  EXPECT_EQ(open_at(socket_.c_str()).code, GRADCUBE_EJOB);
}

TEST_F(DaemonOwner, EveryUserAcceptsADaemonOfRootAndOfTheirOwn) {
  for (const uid_t user : {uid_t{0}, kOneUser}) {
    const auto daemon = daemon_of(user);
    as_user(kOneUser, [&] { EXPECT_EQ(open_at(socket_.c_str()).code, GRADCUBE_OK) << user; });
  }
}

TEST_F(DaemonOwner, AUserWhoIsNotRootIsToldToStartAClusterOfTheirOwnOrToNameThatUser) {
  const auto daemon = daemon_of(kAnotherUser);
  as_user(kOneUser, [&] {
    const auto [code, message] = open_at(socket_.c_str());
    EXPECT_EQ(code, GRADCUBE_EJOB);
    EXPECT_TRUE(
        message.ends_with("start a cluster of your own with `gradcube up`, or set "
                          "GRADCUBE_DAEMON_UID=1001 to give that user's daemon your "
                          "gradients"))
        << message;
    const Environment user("GRADCUBE_DAEMON_UID", "1001");
    EXPECT_EQ(open_at(socket_.c_str()).code, GRADCUBE_OK);
  });
}

}  // namespace
}  // namespace gradcube::trainer
