#include "cli/cluster/host_load.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;

class HostLoad : public testing::Test {
 protected:
  HostLoad() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    proc_ = mkdtemp(name.data());
  }
  ~HostLoad() override { fs::remove_all(proc_); }

  void thread(const std::string& process, const std::string& id, const std::string& schedstat) {
    const fs::path directory = proc_ / process / "task" / id;
    fs::create_directories(directory);
    std::ofstream(directory / "schedstat") << schedstat;
  }

  fs::path proc_;
};

TEST_F(HostLoad, IsReadOfAllThreads) {
  thread("7", "7", "100 5 3\n");
  thread("7", "8", "100 6000000000 3\n");
  thread("9", "9", "0 0 0\n");
  thread("11", "11", "100 77 3\n");
  std::ofstream(proc_ / "7/task/8/status")
      << "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t9\n";
  const ThreadLoads loads = thread_loads({7, 9}, proc_);
  ASSERT_EQ(loads.size(), 3u);
  EXPECT_EQ(loads.at("7").waited_ns, 5u);
  EXPECT_EQ(loads.at("8").ran_ns, 100u);
  EXPECT_EQ(loads.at("8").waited_ns, 6'000'000'000u);
  EXPECT_EQ(loads.at("8").sleeps, 12u);
  EXPECT_EQ(loads.at("9").waited_ns, 0u);
}

TEST_F(HostLoad, IsNothingWhereItCannotBeRead) {
  thread("7", "7", "");
  thread("7", "8", "100 -");
  fs::create_directories(proc_ / "7/task/9");
  EXPECT_TRUE(thread_loads({7, 8}, proc_).empty());
}

TEST_F(HostLoad, HasSleepsWhereTheKernelCountsNoTimes) {
  thread("7", "8", "100 -");
  std::ofstream(proc_ / "7/task/8/status") << "voluntary_ctxt_switches:\t12\n";
  const ThreadLoads loads = thread_loads({7}, proc_);
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads.at("8").ran_ns, 0u);
  EXPECT_EQ(loads.at("8").sleeps, 12u);
}

TEST_F(HostLoad, IsThatOfTheThreadThatWaitedTheLongest) {
  const auto waited = [](std::uint64_t ns) { return ThreadLoad{.waited_ns = ns}; };
  const ThreadLoads before = {
      {"1", waited(100)}, {"2", waited(5'000'000'000)}, {"3", waited(7'000'000'000)}};
  const ThreadLoads after = {{"1", waited(500'000'100)},
                             {"2", waited(5'250'000'000)},
                             {"3", waited(0)},
                             {"4", waited(9'000'000'000)}};
  EXPECT_DOUBLE_EQ(longest_core_wait(before, after), 0.5) << "3 is another, and 4 is new";
  EXPECT_EQ(longest_core_wait(before, {}), 0);
}

TEST_F(HostLoad, IsThatOfTheDaemonAndOfThoseOfATestBed) {
  EXPECT_EQ(daemon_processes(nlohmann::json::parse(
                R"({"pid": 1, "servers": [{"pid": 2}, {"pid": "x"}, {}, {"pid": 3}],
                    "switch_daemons": [{"pid": 4}]})")),
            (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(daemon_processes({}).empty());
}

TEST_F(HostLoad, IsKnownOfThisProcess) {
  const auto self = static_cast<std::uint64_t>(getpid());
  if (!fs::exists("/proc/self/schedstat")) GTEST_SKIP() << "this kernel does not count";
  EXPECT_TRUE(thread_loads({self}).contains(std::to_string(self)));
}

}  // namespace
}  // namespace gradcube::cli
