// `gradcube perf` where no cluster runs: a command line that no cluster can run ends with 2, and
// one that some cluster could with 1.
#include <gtest/gtest.h>
#include <string>

#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

class PerfCommand : public CommandLine {};

TEST_F(PerfCommand, RefusesWhatNoClusterHasBeforeOneIsAsked) {
  expect_usage_error({"perf", "allreduce", "--algorithm", "bogus"},
                     "--algorithm \"bogus\": there is no such algorithm");
  expect_usage_error({"perf", "allreduce", "--algorithm", "bogus:mesh"}, "no such algorithm");
  expect_usage_error({"perf", "allreduce", "--algorithm", std::string(56, 'x')},
                     "the name has 56 bytes; expected at most 55");
  expect_usage_error({"perf", "hub", "--algorithm", "bogus"}, "no such algorithm");
  expect_usage_error({"perf", "sendrecv", "--from", "99999999"}, "--from");
  expect_usage_error({"perf", "sendrecv", "--from", "x"}, "--from");
  expect_usage_error({"perf", "sendrecv", "--to", "-1"}, "--to");
  expect_usage_error({"perf", "sendrecv", "--paths", "99"}, "--paths");
  expect_usage_error({"perf", "sendrecv", "--op", "sum"}, "there is no flag \"--op\"");
  expect_usage_error({"perf", "sendrecv", "--algorithm", "bml"},
                     "there is no flag \"--algorithm\"");
  const Outcome right = gradcube({"perf", "sendrecv", "--from", "1", "--to", "0", "--paths", "2"});
  EXPECT_EQ(right.code, 1) << right.err;
  EXPECT_EQ(gradcube({"perf", "allreduce", "--algorithm", "auto:1us,2us"}).code, 1);
}

}  // namespace
}  // namespace gradcube::cli
