#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "dataplane/bed/child_process.h"
#include "dataplane/bed/run_batch.h"
#include "tests/unit/control/message.h"

namespace gradcube::dataplane {
namespace {

using control::message_of;
using control::SetupError;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(20);

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ChildProcess, TellsHowItEnded) {
  ChildProcess good = ChildProcess::start([] { _exit(0); });
  ASSERT_TRUE(good.ends_by(SteadyClock::now() + kPatience));
  EXPECT_TRUE(good.succeeded());
  ChildProcess bad = ChildProcess::start([] { _exit(3); });
  ASSERT_TRUE(bad.ends_by(SteadyClock::now() + kPatience));
  EXPECT_FALSE(bad.succeeded());
  EXPECT_EQ(bad.end_text(), "exit code 3");
}

TEST(ChildProcess, HasNotSucceededWhereNobodyLearnsHowItEnded) {
  ChildProcess child = ChildProcess::start([] { pause(); });
  const auto before = signal(SIGCHLD, SIG_IGN);
  child.send(SIGKILL);
  EXPECT_TRUE(child.ends_by(SteadyClock::now() + kPatience));
  signal(SIGCHLD, before);
  EXPECT_FALSE(child.succeeded());
}

TEST(ChildProcess, RunsUntilItIsTold) {
  ChildProcess child = ChildProcess::start([] { pause(); });
  EXPECT_FALSE(child.ends_by(SteadyClock::time_point()));
  child.send(SIGTERM);
  ASSERT_TRUE(child.ends_by(SteadyClock::now() + kPatience)) << "no signal is blocked in it";
  EXPECT_EQ(child.end_text(), "signal 15 (Terminated)");
}

TEST(ChildProcess, DiesWithTheObject) {
  pid_t pid = 0;
  {
    ChildProcess child = ChildProcess::start([] { pause(); });
    pid = child.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

// That a child, which does this first, ends with its parent.
void expect_to_die_with_its_parent(const std::function<void()>& first) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ChildProcess parent = ChildProcess::start([&] {
    const ChildProcess child = ChildProcess::start([&] {
      first();
      (void)!write(ends[1], "x", 1);
      pause();
    });
    pause();
  });
  close(ends[1]);
  pollfd event{ends[0], POLLIN, 0};
  const int patience = static_cast<int>(std::chrono::milliseconds(kPatience).count());
  char byte = 0;
  ASSERT_EQ(poll(&event, 1, patience), 1);
  ASSERT_EQ(read(ends[0], &byte, 1), 1) << "the child runs";
  parent.send(SIGKILL);
  ASSERT_EQ(poll(&event, 1, patience), 1) << "the child lives";
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "the child has closed its end";
  close(ends[0]);
}

TEST(ChildProcess, DiesWithItsParentHoweverThatEnds) {
  expect_to_die_with_its_parent([] {});
}

TEST(ChildProcess, DiesWithItsParentAlsoWhenItHasSeenToItAnew) {
  expect_to_die_with_its_parent([] {
    // As the kernel does when a file with capabilities is executed.
    prctl(PR_SET_PDEATHSIG, 0);
    if (!die_with(getppid())) _exit(1);
  });
}

TEST(ChildProcess, IsToldThatItsParentHasGone) {
  ChildProcess child = ChildProcess::start([] { _exit(die_with(getpid()) ? 0 : 3); });
  ASSERT_TRUE(child.ends_by(SteadyClock::now() + kPatience));
  EXPECT_EQ(child.end_text(), "exit code 3");
}

TEST(RunBatch, NamesTheCommandThatFailedAndWhatToDo) {
  EXPECT_EQ(batch_failure("ip", "link a\nlink b\nlink c\n",
                          "Error: Unknown device type.\nCommand failed -:2\n"),
            "`ip link b` failed: Error: Unknown device type.; the kernel must have bridges, veths "
            "and token buckets: `modprobe -a bridge veth sch_tbf`");
  EXPECT_TRUE(contains(batch_failure("tc", "qdisc a\n",
                                     "RTNETLINK answers: Operation not permitted\n"
                                     "Command failed -:1\n"),
                       "`tc qdisc a` failed: RTNETLINK answers: Operation not permitted; it needs "
                       "root"));
  EXPECT_EQ(batch_failure("ip", "link a\n", "Command failed -:99\n"),
            "`ip -batch -` failed: it did not say why");
}

TEST(RunBatch, SaysWhatToInstallForAProgramThatIsNotThere) {
  EXPECT_TRUE(contains(message_of<SetupError>([] { find_network_program("no-such-program"); }),
                       "cannot find the program no-such-program"));
  EXPECT_EQ(find_network_program("true").filename(), "true");
}

TEST(RunBatch, DoesNotWaitForEver) {
  const std::filesystem::path program = testing::TempDir() + "slow-" + std::to_string(getpid());
  std::ofstream(program) << "#!/bin/sh\nexec sleep 60\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto patience = std::chrono::milliseconds(50);
  EXPECT_EQ(message_of<SetupError>([&] { run_batch(program, "link\n", kOwnNamespace, patience); }),
            program.filename().string() + " did not end within 50 ms");
  std::filesystem::remove(program);
}

TEST(RunBatch, ReportsAProgramThatEndsInSilence) {
  EXPECT_EQ(message_of<SetupError>([] { run_batch("/bin/false", "link\n"); }),
            "false ended with exit code 1");
  EXPECT_EQ(message_of<SetupError>([] { run_batch("/bin/true", "link\n"); }), "");
}

TEST(RunBatch, GivesTheProgramTheCommandsAndReturnsItsComplaint) {
  if (access("/usr/sbin/ip", X_OK) != 0 && access("/sbin/ip", X_OK) != 0) {
    GTEST_SKIP() << "iproute2 is not installed";
  }
  const auto ip = find_network_program("ip");
  const std::string said = message_of<SetupError>(
      [&] { run_batch(ip, "link show dev lo\nlink show dev no-such-link\n"); });
  EXPECT_TRUE(contains(said, "`ip link show dev no-such-link` failed: ")) << said;
  EXPECT_TRUE(contains(said, "does not exist")) << said;
  EXPECT_EQ(message_of<SetupError>([&] { run_batch(ip, "link show dev lo\n"); }), "");
}

}  // namespace
}  // namespace gradcube::dataplane
