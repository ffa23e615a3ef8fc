#include "cli/cluster/daemon_process.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using control::RunDirectory;
using control::SetupError;

// Shell scripts stand in for gradcubed: what matters here is what it says, and how it ends.
class DaemonProcessTest : public testing::Test {
 protected:
  DaemonProcessTest() : root_(make_root()), directory_(root_) {}
  ~DaemonProcessTest() override { fs::remove_all(root_); }

  DaemonStart script(const std::string& body) {
    const fs::path path = root_ / "daemon.sh";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return {.executable = path,
            .settings = R"({"mtu":9000})",
            .timeout = std::chrono::seconds(20),
            .waiting = {}};
  }

  std::string message_of_failure(const DaemonStart& start) {
    return control::message_of<SetupError>([&] { start_daemon(directory_, start); });
  }

  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  static std::string make_root() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    return mkdtemp(name.data());
  }

  fs::path root_;
  RunDirectory directory_;
};

TEST_F(DaemonProcessTest, ReturnsThePidOfAReadyDaemonInASessionOfItsOwn) {
  const pid_t pid = start_daemon(
      directory_,
      script("echo \"$@\"; echo '{\"ok\":true,\"pid\":'$$'}' >&3; exec 3>&-; exec sleep 100"));
  ASSERT_GT(pid, 0);
  EXPECT_EQ(getsid(pid), pid);
  EXPECT_EQ(text_of(directory_.log_file()),
            "--all --run-dir " + root_.string() + " --settings {\"mtu\":9000} --ready-fd 3\n");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST_F(DaemonProcessTest, PassesOnWhyADaemonWouldNotStart) {
  const std::string message = message_of_failure(
      script("echo '{\"ok\":false,\"error\":\"there is no core 77\"}' >&3; exit 1"));
  EXPECT_EQ(message, "there is no core 77; the daemon's log is " + directory_.log_file().string());
}

TEST_F(DaemonProcessTest, TellsHowADaemonDiedAndWhatItSaidLast) {
  EXPECT_THAT(message_of_failure(script("echo first; echo last words >&2; exit 7")),
              testing::AllOf(testing::HasSubstr("exit code 7"), testing::HasSubstr("last words"),
                             testing::HasSubstr(directory_.log_file().string())));
  EXPECT_THAT(message_of_failure(script("kill -SEGV $$")), testing::HasSubstr("signal 11"));
}

TEST_F(DaemonProcessTest, KeepsTheLogOfTheDaemonBefore) {
  for (const char* words : {"first", "second", "third"}) {
    message_of_failure(script(std::string("echo ") + words + "; exit 1"));
  }
  EXPECT_EQ(text_of(directory_.log_file()), "third\n");
  EXPECT_EQ(text_of(directory_.old_log_file()), "second\n");
}

TEST_F(DaemonProcessTest, EndsADaemonThatDoesNotGetReady) {
  DaemonStart start = script("echo $$ > " + (root_ / "pid").string() + "; exec sleep 100");
  start.timeout = std::chrono::milliseconds(300);
  EXPECT_THAT(message_of_failure(start), testing::HasSubstr("was not ready"));
  pid_t pid = 0;
  std::ifstream(root_ / "pid") >> pid;
  if (pid > 0) {
    EXPECT_EQ(kill(pid, 0), -1) << "it must be gone";
  }
}

TEST_F(DaemonProcessTest, TellsItsCallerThatItWaits) {
  const std::string told = (root_ / "told").string();
  DaemonStart start = script("until test -e " + told +
                             "; do sleep 0.01; done; echo '{\"ok\":false,\"error\":\"told\"}' >&3");
  start.waiting = [&] { std::ofstream(told) << "now"; };
  EXPECT_THAT(message_of_failure(start), testing::StartsWith("told; "));
}

TEST_F(DaemonProcessTest, EndsADaemonThatClosesItsPipeAndLivesOn) {
  EXPECT_THAT(message_of_failure(script("exec 3>&-; exec sleep 100")),
              testing::HasSubstr("did not tell how its start went"));
}

TEST_F(DaemonProcessTest, TellsOfAProgramThatIsNone) {
  DaemonStart start = script("");
  start.executable = root_ / "nothing";
  EXPECT_THAT(message_of_failure(start),
              testing::HasSubstr("cannot run " + start.executable.string()));
}

TEST_F(DaemonProcessTest, TellsOfAnAnswerThatIsNone) {
  EXPECT_THAT(message_of_failure(script("echo ready >&3; sleep 100")),
              testing::HasSubstr("does not follow the protocol"));
}

TEST_F(DaemonProcessTest, IsFoundWhereTheEnvironmentSays) {
  const DaemonStart start = script("");
  setenv("GRADCUBED", start.executable.c_str(), 1);
  EXPECT_EQ(find_daemon(), start.executable);
  setenv("GRADCUBED", "/nowhere/gradcubed", 1);
  EXPECT_THROW(find_daemon(), SetupError);
  unsetenv("GRADCUBED");
}

}  // namespace
}  // namespace gradcube::cli
