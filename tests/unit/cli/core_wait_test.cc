#include "cli/cluster/core_wait.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;

class CoreWait : public testing::Test {
 protected:
  CoreWait() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    proc_ = mkdtemp(name.data());
  }
  ~CoreWait() override { fs::remove_all(proc_); }

  void thread(const std::string& process, const std::string& id, const std::string& schedstat) {
    const fs::path directory = proc_ / process / "task" / id;
    fs::create_directories(directory);
    std::ofstream(directory / "schedstat") << schedstat;
  }

  fs::path proc_;
};

TEST_F(CoreWait, IsReadOfAllThreads) {
  thread("7", "7", "100 5 3\n");
  thread("7", "8", "100 6000000000 3\n");
  thread("9", "9", "0 0 0\n");
  thread("11", "11", "100 77 3\n");
  EXPECT_EQ(core_waits({7, 9}, proc_), (CoreWaits{{"7", 5}, {"8", 6'000'000'000}, {"9", 0}}));
}

TEST_F(CoreWait, IsNothingWhereItCannotBeRead) {
  thread("7", "7", "");
  thread("7", "8", "100 -");
  fs::create_directories(proc_ / "7/task/9");
  EXPECT_TRUE(core_waits({7, 8}, proc_).empty());
}

TEST_F(CoreWait, IsThatOfTheThreadThatWaitedTheLongest) {
  const CoreWaits before = {{"1", 100}, {"2", 5'000'000'000}, {"3", 7'000'000'000}};
  const CoreWaits after = {
      {"1", 500'000'100}, {"2", 5'250'000'000}, {"3", 0}, {"4", 9'000'000'000}};
  EXPECT_DOUBLE_EQ(longest_core_wait(before, after), 0.5) << "3 is another, and 4 is new";
  EXPECT_EQ(longest_core_wait(before, {}), 0);
}

TEST_F(CoreWait, IsThatOfTheDaemonAndOfThoseOfATestBed) {
  EXPECT_EQ(daemon_processes(nlohmann::json::parse(
                R"({"pid": 1, "servers": [{"pid": 2}, {"pid": "x"}, {}, {"pid": 3}],
                    "switch_daemons": [{"pid": 4}]})")),
            (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(daemon_processes({}).empty());
}

TEST_F(CoreWait, IsKnownOfThisProcess) {
  const auto self = static_cast<std::uint64_t>(getpid());
  if (!fs::exists("/proc/self/schedstat")) GTEST_SKIP() << "this kernel does not count";
  EXPECT_TRUE(core_waits({self}).contains(std::to_string(self)));
}

}  // namespace
}  // namespace gradcube::cli
