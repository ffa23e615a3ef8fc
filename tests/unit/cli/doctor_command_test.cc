#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Doctor : public CommandLine {
 protected:
  // Puts a program before all others of its name.
  void fake(const std::string& name, const std::string& script) {
    programs_ = root_ / "programs";
    fs::create_directories(programs_);
    const fs::path program = fs::path(programs_) / name;
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
  }
};

TEST_F(Doctor, StartsADaemonAndSaysWhyItDoesNotStart) {
  daemon_ = root_ / "gradcubed's twin";
  std::ofstream(daemon_) << "#!/bin/sh\nexit 127\n";
  fs::permissions(daemon_, fs::perms::owner_all);
  const Outcome broken = gradcube({"doctor"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.out, HasSubstr("FAIL  daemon"));
  EXPECT_THAT(broken.out, HasSubstr("exit code 127"));
  std::ofstream(daemon_) << "#!/bin/sh\necho '{\"ok\":false,\"error\":\"no core 77\"}' >&3\n";
  const Outcome refused = gradcube({"doctor", "--topology", "star:3"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, HasSubstr("one of star:3 does not start: no core 77\n"));
  std::ofstream(daemon_) << "#!/bin/sh\necho '{\"ok\":true}' >&3\nexec sleep 60\n";
  EXPECT_THAT(gradcube({"doctor"}).out, HasSubstr("OK    daemon"));
  for (const auto& left : fs::directory_iterator(root_)) {
    EXPECT_THAT(left.path().filename().string(), testing::Not(HasSubstr("trial"))) << "of a daemon";
  }
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

TEST_F(Doctor, WarnsOfAHeapThatTrainersRefuse) {
  const auto said_of = [this](const char* heap) {
    setenv("GRADCUBE_HEAP", heap, 1);
    const Outcome outcome = gradcube({"doctor"});
    unsetenv("GRADCUBE_HEAP");
    return outcome.out;
  };
  for (const char* odd : {"lots", "0", "-1", "2000Gi"}) {
    EXPECT_THAT(said_of(odd), HasSubstr("WARN  heap")) << odd;
  }
  for (const char* fit : {"", "64Mi"}) EXPECT_THAT(said_of(fit), HasSubstr("OK    heap")) << fit;
}

TEST_F(Doctor, AnswersInJsonEvenWhenSomethingIsMissing) {
  const Outcome outcome = gradcube({"doctor", "--json"});
  EXPECT_EQ(outcome.code, 1) << "there is no daemon at /nowhere";
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["ok"], false);
  bool named = false;
  for (const auto& check : report["checks"]) {
    EXPECT_TRUE(check["verdict"] == "OK" || !check["finding"].get<std::string>().empty());
    named = named || (check["name"] == "daemon" && check["verdict"] == "FAIL");
  }
  EXPECT_TRUE(named);
}

TEST_F(Doctor, ChecksTheNicsThatAreNamed) {
  EXPECT_THAT(gradcube({"doctor"}).out, testing::Not(HasSubstr("nic ")));
  const Outcome outcome = gradcube({"doctor", "--nic", "eth-nowhere", "--nic", "ffff:ff:1f.7"});
  EXPECT_THAT(outcome.out, HasSubstr("WARN  nic eth-nowhere"));
  EXPECT_THAT(outcome.out, HasSubstr("WARN  nic ffff:ff:1f.7"));
  expect_usage_error({"doctor", "--nic", ""}, "--nic");
  expect_usage_error({"doctor", "eth0"}, "eth0");
}

TEST_F(Doctor, LooksAtTheKeyOfTheClusterFile) {
  const fs::path key = root_ / "cube.key";
  const fs::path file = root_ / "cluster.toml";
  const auto said_of = [&](const std::string& security) {
    std::ofstream(file) << "[topology]\nspec = \"star:2\"\n[security]\n" << security << "\n";
    return gradcube({"doctor", "--cluster", file.string()}).out;
  };
  const std::string named = "key-file = \"" + key.string() + "\"";
  EXPECT_THAT(gradcube({"doctor"}).out, HasSubstr("OK    authentication"));
  EXPECT_THAT(said_of(named), HasSubstr("FAIL  authentication"));
  EXPECT_THAT(said_of(named), HasSubstr("-> gradcube keygen"));
  ASSERT_EQ(gradcube({"keygen", key.string()}).code, 0);
  EXPECT_THAT(said_of(named), HasSubstr("OK    authentication"));
  fs::permissions(key, fs::perms::others_read, fs::perm_options::add);
  EXPECT_THAT(said_of(named), HasSubstr("can be used by others than its owner"));
  EXPECT_THAT(said_of("authentication = \"none\""), HasSubstr("WARN  authentication"));
  EXPECT_THAT(said_of("authentication = \"none\""),
              HasSubstr("whoever can send frames to the daemons can change results"));
}

TEST_F(Doctor, SaysWhatTheTestBedLacks) {
  fake("ip", "exit 0");
  fake("tc", "exit 0");
  fake("unshare", "exit 1");
  EXPECT_THAT(gradcube({"doctor"}).out, HasSubstr("this user cannot make network namespaces"));
  fake("unshare", "case \"$*\" in *bridge*) exit 1;; esac");
  EXPECT_THAT(gradcube({"doctor"}).out, HasSubstr("-> sudo modprobe bridge"));
  fake("unshare", "case \"$*\" in *'peer name'*) exit 1;; esac");
  EXPECT_THAT(gradcube({"doctor"}).out, HasSubstr("-> sudo modprobe veth"));
  fake("unshare", "case \"$*\" in *tbf*) exit 1;; esac");
  EXPECT_THAT(gradcube({"doctor"}).out, HasSubstr("-> sudo modprobe sch_tbf"));
  fake("unshare", "exit 0");
  EXPECT_THAT(gradcube({"doctor"}).out, HasSubstr("OK    test bed"));
}

// As under `ulimit -u` and `ulimit -n`.
TEST_F(Doctor, SaysWhereItCannotLook) {
  fake("timeout", "echo 'timeout: fork system call failed: Resource' >&2; exit 125");
  const std::string out = gradcube({"doctor"}).out;
  EXPECT_THAT(out, HasSubstr("cannot look for ip and tc: no shell runs (timeout: fork system"));
  EXPECT_THAT(out, HasSubstr("cannot look for numpy and torch: no shell runs (timeout: fork"));
  EXPECT_THAT(out, testing::Not(HasSubstr("apt-get install -y iproute2")));
}

}  // namespace
}  // namespace gradcube::cli
