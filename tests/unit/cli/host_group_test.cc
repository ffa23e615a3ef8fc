#include "cli/launch/host_group.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "control/base/errors.h"
#include "control/settings/cluster_settings.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(60);

// What it is told, it does; a launcher of its own says which host it is.
class HostGroupTest : public testing::Test {
 protected:
  HostGroupTest() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
    script("launcher", "host=$1; shift; HOST=$host exec \"$@\"");
    hosts_.launcher = (root_ / "launcher").string() + " {host}";
    hosts_.program = (root_ / "program").string();
    hosts_.names = {"one", "two"};
    hosts_.settings.topology = control::parse_topology("star:2", "a test");
    hosts_.settings.fabric = control::FabricKind::udp;
    hosts_.settings.hosts = control::parse_hosts("198.18.0.1 198.18.0.2", "a test");
  }
  ~HostGroupTest() override { fs::remove_all(root_); }

  void script(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(root_ / name, fs::perms::owner_all);
  }

  // Until a script has made this file; whether it has in time.
  bool await(const char* name) const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!fs::exists(root_ / name) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return fs::exists(root_ / name);
  }

  fs::path root_;
  ClusterHosts hosts_;
};

TEST_F(HostGroupTest, AsksAllAndPassesOverWhatALoginPrints) {
  script("program",
         "echo 'Welcome!'\n"
         "while read -r line; do echo \"{\\\"gradcube\\\":1,\\\"ok\\\":true,\\\"host\\\":\\\"$HOST "
         "$1\\\"}\"; done");
  HostGroup group(hosts_);
  for (int round = 0; round < 2; ++round) {
    const auto answers = group.ask(json{{"words", {"status"}}}, kPatience);
    EXPECT_THAT(answers.failures, ElementsAre("", ""));
    EXPECT_EQ(answers.values[0]["host"], "one at-host");
    EXPECT_EQ(answers.values[1]["host"], "two at-host");
  }
}

TEST_F(HostGroupTest, NamesEachHostThatFailsAndWhy) {
  script("program",
         "test $HOST = one && { echo 'no route to it' >&2; exit 255; }\n"
         "read -r line; echo '{\"gradcube\":1,\"ok\":false,\"error\":\"the port is taken\"}'");
  HostGroup group(hosts_);
  const auto answers = group.ask(json::object(), kPatience);
  try {
    answers.require_all(hosts_);
    ADD_FAILURE();
  } catch (const control::SetupError& error) {
    EXPECT_THAT(error.what(), HasSubstr("host one: "));
    EXPECT_THAT(error.what(), HasSubstr("exit code 255 before it answered: no route to it"));
    EXPECT_THAT(error.what(), HasSubstr("; host two: the port is taken"));
  }
}

TEST_F(HostGroupTest, SaysWhatIsMissingThere) {
  HostGroup group(hosts_);
  const auto answers = group.ask(json::object(), kPatience);
  EXPECT_THAT(answers.failures[0], HasSubstr("there is no " + hosts_.program + " there"));
}

TEST_F(HostGroupTest, WaitsForAnAnswerNoLongerThanItMay) {
  script("program", "read -r line; test $HOST = two || exec sleep 1000; exec cat");
  HostGroup group(hosts_, std::chrono::milliseconds(1));
  const auto answers = group.ask(json::object(), std::chrono::seconds(1));
  EXPECT_THAT(answers.failures[0], HasSubstr("has not answered within 1 s"));
}

TEST_F(HostGroupTest, TakesAnAnswerThatIsLateForNoneOfTheNextRequest) {
  script(
      "program",
      "read -r first; read -r second; for of in first second; do echo "
      "\"{\\\"gradcube\\\":1,\\\"ok\\\":true,\\\"of\\\":\\\"$of\\\"}\"; done; exec cat >/dev/null");
  HostGroup group(hosts_, std::chrono::milliseconds(1));
  EXPECT_THAT(group.ask(json::object(), std::chrono::seconds(0)).failures[0],
              HasSubstr("has not answered"));
  const auto answers = group.ask(json::object(), kPatience);
  EXPECT_THAT(answers.failures, ElementsAre("", ""));
  EXPECT_EQ(answers.values[0]["of"], "second");
}

TEST_F(HostGroupTest, SaysWhatAHostSaysInsteadOfAnAnswer) {
  script("program",
         "test $HOST = two && printf 'no newline: '; "
         "echo '{\"gradcube\":1,\"ok\":true}' | sed \"s/^/$(test $HOST = two || echo welcome)/\"; "
         "echo > '" +
             (root_ / "said-").string() + "'$HOST; sleep 1000");
  HostGroup group(hosts_, std::chrono::milliseconds(1));
  for (const char* name : {"said-one", "said-two"}) EXPECT_TRUE(await(name));
  const auto answers = group.ask(json::object(), std::chrono::seconds(1));
  EXPECT_THAT(answers.failures[0], HasSubstr("; what came instead: welcome"));
  EXPECT_THAT(answers.failures[1], HasSubstr("; what came instead: no newline: {"));
}

TEST_F(HostGroupTest, EndsWhatWasNotToldToStayByTheEndOfItsInput) {
  script("program", "while read -r line; do echo '{\"gradcube\":1,\"ok\":true}'; done; echo > '" +
                        (root_ / "undone-").string() + "'$HOST");
  { HostGroup(hosts_).ask(json::object(), kPatience).require_all(hosts_); }
  EXPECT_TRUE(fs::exists(root_ / "undone-one"));
  EXPECT_TRUE(fs::exists(root_ / "undone-two"));
}

TEST_F(HostGroupTest, LetsALauncherLiveThatHasToStay) {
  script("program",
         "read -r line; echo '{\"gradcube\":1,\"ok\":true,\"stays\":true}'\n"
         "read -r line; echo '{\"gradcube\":1,\"ok\":true}'\n"
         "while test ! -e '" +
             (root_ / "end").string() + "'; do sleep 0.01; done; echo > '" +
             (root_ / "stayed-").string() + "'$HOST");
  {
    HostGroup group(hosts_);
    group.ask(json::object(), kPatience).require_all(hosts_);
    group.stay();
  }
  std::ofstream(root_ / "end") << "now";
  for (const char* name : {"stayed-one", "stayed-two"}) EXPECT_TRUE(await(name));
}

TEST_F(HostGroupTest, RunsACommandOnAllAndHasTheExitCodeOfTheFirstThatFails) {
  script("program",
         "read -r line; test $HOST = one && exec cat >/dev/null; case $line in *'\"last\":true'*) "
         "exit 7;; esac");
  EXPECT_EQ(run_on_hosts(hosts_, {"perf", "allreduce"}, hosts_.all(), std::chrono::seconds(5)), 7);
}

TEST_F(HostGroupTest, TellsAHostItsNameAndHowLongItsCommandMayTakeToEnd) {
  script("program", "read -r line; printf '%s' \"$line\" > '" + (root_ / "asked").string() + "'");
  EXPECT_EQ(run_on_hosts(hosts_, {"run", "--", "true"}, {1}, std::chrono::seconds(30)), 0);
  const json request = json::parse(std::ifstream(root_ / "asked"));
  EXPECT_EQ(request["grace"], 30'000'000'000);
  EXPECT_EQ(request["host"], "two");
}

TEST_F(HostGroupTest, TellsMoreThanAPipeHolds) {
  script("program",
         "n=$(head -n 1 | wc -c); echo \"{\\\"gradcube\\\":1,\\\"ok\\\":true,"
         "\\\"bytes\\\":$n}\"; exec cat >/dev/null");
  HostGroup group(hosts_);
  const std::string text(3'000'000, 'x');
  const auto answers = group.ask(json{{"words", {text}}}, kPatience);
  answers.require_all(hosts_);
  EXPECT_GT(answers.values[1]["bytes"], text.size());
}

TEST_F(HostGroupTest, TakesALaunchersExitCodeForAnotherVersionOnlyWhereTheToolSaysSo) {
  script("program", "test $HOST = one && echo -n 'gradcube: ' >&2; echo 'what?' >&2; exit 2");
  HostGroup group(hosts_);
  const auto answers = group.ask(json::object(), kPatience);
  EXPECT_THAT(answers.failures[0], HasSubstr("is another version there"));
  EXPECT_THAT(answers.failures[1], HasSubstr("exit code 2 before it answered: what?"));
}

TEST_F(HostGroupTest, ReachesAHostByTheLaunchersWords) {
  hosts_.launcher = "mpirun";
  hosts_.program = "/usr/bin/gradcube";
  EXPECT_THAT(words_to_reach(hosts_, 1),
              ElementsAre("mpirun", "--quiet", "-n", "1", "--bind-to", "none", "--host", "two",
                          "env", "/usr/bin/gradcube", "at-host"));
  hosts_.launcher = "ssh -p 22 -l {host}.alice {host}";
  EXPECT_THAT(words_to_reach(hosts_, 0), ElementsAre("ssh", "-p", "22", "-l", "one.alice", "one",
                                                     "/usr/bin/gradcube", "at-host"));
  hosts_.launcher = "ssh";
  EXPECT_EQ(words_to_reach(hosts_, 0).front(), "ssh");
  hosts_.settings.hosts = control::parse_hosts("127.0.0.1 198.18.0.2", "a test");
  EXPECT_THAT(words_to_reach(hosts_, 0), ElementsAre(testing::EndsWith("_test"), "at-host"))
      << "this host needs no launcher";
}

TEST_F(HostGroupTest, KeepsWhatIsWrittenOfIt) {
  hosts_.cluster = "93abc";
  const ClusterHosts same = hosts_from_json(hosts_json(hosts_));
  EXPECT_EQ(same.cluster, "93abc");
  EXPECT_EQ(same.names, hosts_.names);
  EXPECT_EQ(same.launcher, hosts_.launcher);
  EXPECT_EQ(same.settings, hosts_.settings);
  EXPECT_EQ(same.address(1), "198.18.0.2");
}

TEST_F(HostGroupTest, RefusesWhatAShellOrALauncherCouldTakeForSomethingElse) {
  for (const char* name : {"", "-oProxyCommand=x", "a b", "a;b", "$HOME", "one"}) {
    ClusterHosts wrong = hosts_;
    wrong.names[1] = name;
    EXPECT_THROW(validate(wrong), control::UsageError) << name;
  }
  for (const char* launcher : {"", "rsh", "ssh host"}) {
    ClusterHosts wrong = hosts_;
    wrong.launcher = launcher;
    EXPECT_THROW(validate(wrong), control::UsageError) << launcher;
  }
  ClusterHosts wrong = hosts_;
  wrong.program = "/opt/my gradcube";
  EXPECT_THROW(validate(wrong), control::UsageError);
  json without = hosts_json(hosts_);
  without.erase("settings");
  EXPECT_THROW(hosts_from_json(without), std::exception);
}

}  // namespace
}  // namespace gradcube::cli
