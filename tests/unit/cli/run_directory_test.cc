#include "control/settings/run_directory.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "control/settings/run_directory_watch.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~RunDirectoryTest() override { fs::remove_all(root_); }

  static std::string message_of(const RunDirectory& directory) {
    return control::message_of<SetupError>([&] { directory.create(); });
  }

  fs::path root_;
};

TEST_F(RunDirectoryTest, IsTakenFromTheEnvironmentInOrder) {
  setenv("GRADCUBE_RUN", "/somewhere/run/", 1);
  setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(RunDirectory::from_environment().path(), "/somewhere/run");
  setenv("GRADCUBE_RUN", "", 1);
  EXPECT_EQ(RunDirectory::from_environment().path(), "/run/user/7/gradcube");
  unsetenv("XDG_RUNTIME_DIR");
  unsetenv("GRADCUBE_RUN");
  EXPECT_EQ(RunDirectory::from_environment().path(), "/tmp/gradcube-" + std::to_string(geteuid()));
}

TEST_F(RunDirectoryTest, NamesItsFiles) {
  const RunDirectory directory("/run/g");
  EXPECT_EQ(directory.control_socket(), "/run/g/control.sock");
  EXPECT_EQ(directory.lock_file(), "/run/g/gradcubed.lock");
  EXPECT_EQ(directory.log_file(), "/run/g/gradcubed.log");
  EXPECT_EQ(directory.server_socket("2-1"), "/run/g/server-2-1.sock");
}

TEST_F(RunDirectoryTest, IsMadeForItsOwnerAlone) {
  const RunDirectory directory(root_ / "deep" / "run");
  directory.create();
  struct stat status;
  ASSERT_EQ(stat(directory.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0700u);
  EXPECT_NO_THROW(directory.create()) << "making it again";
}

TEST_F(RunDirectoryTest, RefusesASymbolicLinkAFileAndOneThatOthersMayWriteTo) {
  fs::create_directory(root_ / "real");
  fs::create_symlink(root_ / "real", root_ / "link");
  EXPECT_THAT(message_of(RunDirectory(root_ / "link")), testing::HasSubstr("symbolic link"));
  std::ofstream(root_ / "file") << "x";
  EXPECT_THAT(message_of(RunDirectory(root_ / "file")), testing::HasSubstr("not a directory"));
  fs::create_directory(root_ / "open");
  fs::permissions(root_ / "open", fs::perms::all);
  EXPECT_THAT(message_of(RunDirectory(root_ / "open")),
              testing::HasSubstr("can be written to by others: set GRADCUBE_RUN"));
}

TEST_F(RunDirectoryTest, RefusesADirectoryOfAnotherUser) {
  if (geteuid() != 0) {
    EXPECT_THAT(message_of(RunDirectory("/usr")), testing::HasSubstr("belongs to user 0"));
    return;
  }
  fs::create_directory(root_ / "theirs");
  ASSERT_EQ(chown((root_ / "theirs").c_str(), 12345, 12345), 0);
  EXPECT_THAT(message_of(RunDirectory(root_ / "theirs")),
              testing::HasSubstr("belongs to user 12345"));
}

TEST_F(RunDirectoryTest, OfAnotherUsersDaemonMayBeLookedAtByWhoNamesThatUser) {
  if (geteuid() != 0) GTEST_SKIP() << "makes a directory of another user, which takes root";
  fs::create_directory(root_ / "theirs");
  ASSERT_EQ(chown((root_ / "theirs").c_str(), 12345, 12345), 0);
  const RunDirectory theirs(root_ / "theirs");
  EXPECT_FALSE(theirs.is_own());
  const auto why = [&] {
    try {
      theirs.check_as_client();
    } catch (const SetupError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(why(), testing::HasSubstr("GRADCUBE_DAEMON_UID=12345"));
  setenv("GRADCUBE_DAEMON_UID", "12345", 1);
  EXPECT_EQ(why(), "");
  EXPECT_THAT(message_of(theirs), testing::HasSubstr("belongs to user 12345"))
      << "no cluster is started there";
  setenv("GRADCUBE_DAEMON_UID", "12345x", 1);
  EXPECT_THAT(why(), testing::HasSubstr("is not a user id"));
  unsetenv("GRADCUBE_DAEMON_UID");
  fs::permissions(root_ / "theirs", fs::perms::all);
  setenv("GRADCUBE_DAEMON_UID", "12345", 1);
  EXPECT_THAT(why(), testing::HasSubstr("can be written to by others"));
  unsetenv("GRADCUBE_DAEMON_UID");
}

TEST_F(RunDirectoryTest, IsOpenedToOthersAndSaysWhatIsStillClosed) {
  const RunDirectory directory(root_ / "closed" / "run");
  directory.create();
  fs::permissions(root_ / "closed", fs::perms::owner_all);
  EXPECT_EQ(directory.admit_others(), root_ / "closed");
  struct stat status {};
  ASSERT_EQ(stat(directory.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0755u);
}

TEST_F(RunDirectoryTest, RefusesAPathTooLongForUnixSockets) {
  EXPECT_THAT(message_of(RunDirectory(root_ / std::string(100, 'x'))),
              testing::HasSubstr("set GRADCUBE_RUN to a shorter one"));
}

TEST_F(RunDirectoryTest, KnowsALivingDaemonByItsLock) {
  const RunDirectory directory(root_ / "run");
  EXPECT_FALSE(directory.living_daemon()) << "without a directory";
  directory.create();
  EXPECT_FALSE(directory.living_daemon()) << "without a lock file";
  {
    const auto lock = DaemonLock::acquire(directory);
    ASSERT_TRUE(lock);
    lock->write_pid();
    const auto daemon = directory.living_daemon();
    ASSERT_TRUE(daemon);
    EXPECT_EQ(daemon->pid, getpid());
    EXPECT_FALSE(DaemonLock::acquire(directory)) << "there is one daemon at a time";
  }
  EXPECT_FALSE(directory.living_daemon()) << "after its end, though the file is still there";
  EXPECT_TRUE(DaemonLock::acquire(directory));
}

TEST_F(RunDirectoryTest, RemovesTheSocketsOfADeadDaemonAndNothingElse) {
  const RunDirectory directory(root_ / "run");
  directory.create();
  const RunDirectory server = directory.of_server("0-1");
  const RunDirectory living = directory.of_server("0-2");
  for (const RunDirectory* one : {&server, &living}) one->create();
  const auto by_hand = DaemonLock::acquire(living);
  fs::create_directory(directory.path() / "notes");
  for (const char* name : {"0-2/control.sock", "server-0-2.sock"}) {
    std::ofstream(directory.path() / name) << "x";
  }
  ASSERT_EQ(directory.living_parts().size(), 1u);
  EXPECT_EQ(directory.living_parts().front().path(), living.path());
  for (const char* name : {"control.sock", "server-0-1.sock", "notes.txt", "gradcubed.log",
                           "0-1/control.sock", "0-1/gradcubed.log", "notes/control.sock"}) {
    std::ofstream(directory.path() / name) << "x";
  }
  EXPECT_THAT(directory.stale_sockets(),
              testing::ElementsAre(server.control_socket(), directory.control_socket(),
                                   directory.server_socket("0-1")));
  const auto lock = DaemonLock::acquire(directory);
  ASSERT_TRUE(lock);
  directory.remove_stale_sockets(*lock);
  EXPECT_THAT(directory.stale_sockets(), testing::IsEmpty());
  EXPECT_TRUE(fs::exists(directory.path() / "notes.txt"));
  EXPECT_TRUE(fs::exists(directory.log_file()));
  EXPECT_TRUE(fs::exists(server.log_file()));
  EXPECT_TRUE(fs::exists(directory.path() / "notes/control.sock"));
  EXPECT_TRUE(fs::exists(living.control_socket())) << "the other server's daemon lives";
  EXPECT_TRUE(fs::exists(directory.server_socket("0-2")));
}

TEST_F(RunDirectoryTest, IsWatchedUntilItIsRemovedOrReplacedWhichIsToldOnce) {
  const RunDirectory directory(root_ / "run");
  for (const bool replaced : {false, true}) {
    directory.create();
    const auto lock = DaemonLock::acquire(directory);
    ASSERT_TRUE(lock.has_value());
    RunDirectoryWatch watch(directory, *lock);
    auto now = std::chrono::steady_clock::now();
    EXPECT_EQ(watch.look(now), std::nullopt);
    fs::remove_all(directory.path());
    if (replaced) directory.create();
    EXPECT_EQ(watch.look(now), std::nullopt) << "the disk is not looked at each time";
    now += std::chrono::seconds(1);
    EXPECT_THAT(watch.look(now).value_or(""), testing::HasSubstr("was removed or replaced"));
    EXPECT_EQ(watch.look(now + std::chrono::seconds(1)), std::nullopt);
    fs::remove_all(directory.path());
  }
}

TEST_F(RunDirectoryTest, IsKeptFromLookingOld) {
  const RunDirectory directory(root_ / "run");
  directory.create();
  const auto lock = DaemonLock::acquire(directory);
  RunDirectoryWatch watch(directory, *lock);
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(100);
  const auto now = std::chrono::steady_clock::now();
  const fs::path another = directory.path() / "hosts.json";
  std::ofstream(another) << "{}";
  for (const auto later : {std::chrono::hours(0), std::chrono::hours(2)}) {
    for (const fs::path& file : {directory.lock_file(), another}) fs::last_write_time(file, old);
    watch.look(now + later);
    for (const fs::path& file : {directory.lock_file(), another}) {
      EXPECT_GT(fs::last_write_time(file), old + std::chrono::hours(90)) << file;
    }
  }
}

}  // namespace
}  // namespace gradcube::control
