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
                     "there is no collective \"alltoall\"; expected allreduce, reduce_scatter, "
                     "allgather, broadcast, reduce, barrier");
  expect_usage_error({"perf", "brodcast"}, "(did you mean broadcast?)");
}

TEST_F(CommandLine, RefusesOptionsThatACollectiveHasNoUseFor) {
  expect_usage_error({"perf", "allreduce", "--root", "1"}, "--root: an all-reduce has no root");
  expect_usage_error({"perf", "reduce-scatter", "--root", "0"}, "a reduce-scatter has no root");
  expect_usage_error({"perf", "barrier", "--root", "0"}, "a barrier has no root");
  expect_usage_error({"perf", "broadcast", "--op", "sum"}, "--op: a broadcast adds nothing");
  expect_usage_error({"perf", "allgather", "--op", "max"}, "expected perf allgather without it");
  expect_usage_error({"perf", "barrier", "--op", "sum"}, "--op: a barrier adds nothing");
  expect_usage_error({"perf", "barrier", "--sizes", "1K"}, "--sizes: a barrier has no bytes");
  expect_usage_error({"perf", "barrier", "-b", "1K"}, "--min-bytes: a barrier has no bytes");
  expect_usage_error({"perf", "barrier", "--dtype", "int8"}, "a barrier has no elements");
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
