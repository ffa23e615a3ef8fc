// What `gradcube perf` takes and refuses, with no cluster anywhere near.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

TEST_F(CommandLine, RefusesCollectivesThatDoNotExistAndNamesThoseThatDo) {
  expect_usage_error({"perf", "alltoall"},
                     "there is no command \"perf alltoall\"; the commands are allreduce, "
                     "reduce_scatter, allgather, broadcast, reduce, barrier, sendrecv, hub");
  expect_usage_error({"perf", "brodcast"}, "(did you mean broadcast?)");
}

TEST_F(CommandLine, TakesEverySpellingOfACollective) {
  for (const char* name : {"allreduce", "all-reduce", "all_reduce", "reduce_scatter", "barrier",
                           "reduce-scatter", "allgather", "all-gather", "all_gather", "broadcast",
                           "reduce", "sendrecv", "send-recv", "send_recv"}) {
    const Outcome outcome = gradcube({"perf", name});
    EXPECT_EQ(outcome.code, 1) << name << ": " << outcome.err;
    EXPECT_THAT(outcome.err, testing::HasSubstr("no cluster runs")) << name;
  }
}

TEST_F(CommandLine, RefusesOptionsThatACollectiveHasNoUseFor) {
  const auto expect_unknown = [this](const char* collective, const std::string& flag) {
    expect_usage_error({"perf", collective, flag, "1"}, "there is no flag \"" + flag + "\"");
  };
  for (const char* collective : {"allreduce", "reduce-scatter", "allgather", "barrier"}) {
    expect_unknown(collective, "--root");
  }
  for (const char* collective : {"broadcast", "allgather", "barrier"}) {
    expect_unknown(collective, "--op");
  }
  for (const char* flag : {"--sizes", "--min-bytes", "--dtype"}) expect_unknown("barrier", flag);
  expect_unknown("allreduce", "--from");
  expect_usage_error({"perf", "barrier", "-b", "1K"}, "there is no flag \"-b\"");
  expect_usage_error({"perf", "--check", "allreduce"},
                     "\"--check\" stands before its command: expected it behind, as in `gradcube "
                     "perf allreduce --check`");
  expect_usage_error({"perf", "-b", "1K", "allreduce"},
                     "\"-b\" stands before its command: expected it behind, as in `gradcube perf "
                     "allreduce -b`");
  for (const char* word : {"-b1K", "--min-bytes=1K"}) {
    expect_usage_error({"perf", word, "allreduce"}, "stands before its command");
  }
  expect_usage_error({"perf", "-b", "1K"}, "as in `gradcube perf allreduce -b`");
  expect_usage_error({"perf", "-b", "1K", "allreduc"}, "(did you mean allreduce?)");
}

TEST_F(CommandLine, RefusesValuesThatACollectiveCannotHave) {
  expect_usage_error({"perf", "reduce", "--root", "x"}, "--root");
  expect_usage_error({"perf", "reduce", "--root", "-1"}, "--root");
  expect_usage_error({"perf", "reduce", "--dtype", "bytes"}, "\"bytes\" cannot be added");
  expect_usage_error({"perf", "reduce_scatter", "--dtype", "bytes"}, "\"bytes\" cannot be added");
  expect_usage_error({"perf", "broadcast", "--dtype", "fp32"}, "int8, uint8, bytes");
  expect_usage_error({"perf", "allgather", "--sizes", "3"}, "a size of 3 B holds no float32");
  for (const char* flag : {"--members", "--algorithm", "--root", "--op", "--dtype"}) {
    expect_usage_error({"perf", "reduce", flag, ""}, flag);
  }
}

TEST_F(CommandLine, RefusesSizesAndRangesThatMakeNoSense) {
  const std::vector<std::string> perf = {"perf", "allreduce"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), perf.begin(), perf.end());
    return more;
  };
  expect_usage_error(with({"--sizes", "0.0000001"}), "whole number of bytes");
  expect_usage_error(with({"-b", "1K", "--sizes", "1K"}), "--sizes");
  expect_usage_error(with({"-b", "2K", "-e", "1K"}), "--max-bytes");
  expect_usage_error(with({"-e", "1K"}), "--min-bytes");
  expect_usage_error(with({"-f", "2"}), "--min-bytes");
  expect_usage_error(with({"-b", "0", "-e", "1K"}), "--min-bytes");
  expect_usage_error(with({"-b", "1K", "-e", "1M", "-f", "1"}), "--factor");
  expect_usage_error(with({"--min-bytes", "1Q"}), "--min-bytes");
}

TEST_F(CommandLine, TakesTheRangesOfNcclTests) {
  const Outcome outcome = gradcube({"perf", "allreduce", "-b", "1k", "-e", "16Mi", "-f", "2", "-n",
                                    "20", "-w", "5", "-d", "int32"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("no cluster runs"));
}

}  // namespace
}  // namespace gradcube::cli
