// The tool with no cluster anywhere near: what it prints where, and its exit codes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/text/option_checks.h"
#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// All that the tool has.
std::vector<std::string> commands_of(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help.substr(std::min(help.find("Subcommands:"), help.size())));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.starts_with("  ")) {
    if (line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

TEST_F(CommandLine, RefusesTopologiesThatDoNotExist) {
  for (const char* command : {"up", "plan"}) {
    expect_usage_error({command, "--topology", "bcube:0,2"}, "--topology");
    expect_usage_error({command, "--topology", "bcube:3"}, "--topology");
    expect_usage_error({command, "--topology", "ring:4"}, "--topology");
    expect_usage_error({command, "--topology", "bcube:256,7"}, "--topology");
    expect_usage_error({command, "--topology", "torus:2,2"}, "n is 2, but it is 3..256");
  }
}

TEST_F(CommandLine, RefusesSettingsThatAreOutOfRange) {
  expect_usage_error({"up", "--rate", "200"}, "--rate");
  expect_usage_error({"up", "--loss", "2"}, "--loss");
  expect_usage_error({"up", "--loss", "nan"}, "--loss");
  expect_usage_error({"up", "--mtu", "100"}, "--mtu");
  expect_usage_error({"up", "--delay", "5"}, "--delay");
  expect_usage_error({"up", "--idle", "sleepy"}, "--idle");
  expect_usage_error({"up", "--lcores", "0,x"}, "--lcores");
  expect_usage_error({"up", "--queue", "1"}, "queue");
}

TEST_F(CommandLine, RefusesAClusterFileWithAnUnknownKeyAndNamesIt) {
  const std::string file = (root_ / "cluster.toml").string();
  std::ofstream(file) << "[link]\nrat = \"200mbit\"\n";
  expect_usage_error({"up", "--cluster", file}, "rat");
  expect_usage_error({"up", "--cluster", (root_ / "missing.toml").string()}, "missing.toml");
}

TEST_F(CommandLine, RefusesUnknownCommandsAndFlags) {
  expect_usage_error({}, "--help");
  const std::vector<std::string> commands = commands_of(output({"--help"}));
  EXPECT_THAT(commands, testing::IsSupersetOf({"up", "perf", "doctor"}));
  for (const std::string& command : commands) {
    expect_usage_error({}, command);
    expect_usage_error({"dance"}, command);
    expect_usage_error({"--json", "dance", "wildly"}, command);
  }
  expect_usage_error({"dance"}, "there is no command \"dance\"");
  expect_usage_error({"stauts", "--help"}, "there is no command \"stauts\" (did you mean status?)");
  expect_usage_error({"--help", "dance"}, "there is no command \"dance\"");
  expect_usage_error({"model", "dance", "--help"}, "there is no command \"model dance\"");
  expect_usage_error({"model", "--json", "gst"},
                     "\"--json\" stands before its command: expected it behind, as in `gradcube "
                     "model gst --json`");
  expect_usage_error({"status", "--nothing"}, "--nothing");
  expect_usage_error({"perf"}, "collective");
  expect_usage_error({"perf", "allreduce", "--sizes", "1K,,2K"}, "--sizes");
  expect_usage_error({"perf", "allreduce", "--sizes", "1Q"}, "there is no unit \"Q\"");
  expect_usage_error({"perf", "allreduce", "--dtype", "fp32"}, "expected float32");
  expect_usage_error({"perf", "allreduce", "--op", "product"}, "expected sum");
  expect_usage_error({"perf", "allreduce", "--dtype", "bytes"}, "\"bytes\" cannot be added");
  expect_usage_error({"perf", "allreduce", "--dtype", "bytes"}, "int64, int8, uint8");
  expect_usage_error({"perf", "allreduce", "--dtype", "int8", "--op", "average"},
                     "int8 has no average; expected sum, min, max");
  expect_usage_error({"perf", "allreduce", "--iterations", "0"}, "--iterations");
  expect_usage_error({"perf", "allreduce", "--in-flight", "1025"}, "--in-flight");
  expect_usage_error({"perf", "allreduce", "-n", "1.5"}, "expected a whole number in 1..1000000");
  expect_usage_error({"impair"}, "nothing to change");
  expect_usage_error({"impair", "--server", "2,1"}, "nothing to change");
  expect_usage_error({"impair", "--loss", "0.1", "--level", "x"}, "--level");
  expect_usage_error({"impair", "--loss", "0.1", "--port", "x"}, "--port");
  expect_usage_error({"impair", "--loss", "1.5"}, "--loss");
  expect_usage_error({"plan", "--server", "3,0"}, "--server");
  expect_usage_error({"plan", "--algorithm", "magic"}, "--algorithm");
  expect_usage_error({"plan", "--topology", "bcube:16,4"}, "--server");
  expect_usage_error({"perf", "allreduce", "--job", "a/b"}, "--job: \"a/b\"");
  expect_usage_error({"perf", "allreduce", "--job", std::string(64, 'j')}, "1 to 63");
}

TEST_F(CommandLine, RefusesToRunWhatIsNoCommand) {
  expect_usage_error({"run"}, "the command is missing; expected `gradcube run -- COMMAND ARGS...`");
  expect_usage_error({"run", "--"}, "the command is missing");
  expect_usage_error({"run", "python3"},
                     "the command stands behind \"--\", as in `gradcube run -- py");
  expect_usage_error({"run", "python3", "-c", "pass"},
                     "the command stands behind \"--\", as in `gradcube run -- python3 ...`");
  expect_usage_error({"run", "--trainer", "3", "--", "true"}, "did you mean --trainers?");
  expect_usage_error({"run", "--trainers", "17", "--", "true"}, "--trainers");
  expect_usage_error({"run", "--port", "65536", "--", "true"}, "--port");
  expect_usage_error({"run", "--grace", "5", "--", "true"}, "--grace");
  expect_usage_error({"run", "--master", "", "--", "true"}, "--master");
  const Outcome missing = gradcube({"run", "--", "no-such-command", "--a=", "[1,2]"});
  EXPECT_EQ(missing.code, 127);
  EXPECT_EQ(missing.err, "gradcube: there is no command \"no-such-command\" in PATH\n");
  EXPECT_THAT(missing.out, IsEmpty());
}

TEST_F(CommandLine, SaysInItsOwnWordsWhichValueIsWrong) {
  for (const char* flag : {"--least-rate", "--most-lost"}) {
    for (const char* value : {"x", "1.5", "-1", "nan"}) {
      expect_usage_error({"check", flag, value},
                         std::string(flag) + ": \"" + value + "\": expected a number in 0..1");
    }
  }
  for (const char* value : {"0", "x", "nan", "-1", "500ns", "61s", "61", "50 us", "50m"}) {
    expect_usage_error({"check", "--most-round-trip", value},
                       std::string("--most-round-trip: \"") + value + "\": expected a time");
  }
  for (const char* value : {"50us", "1us", "60s", "0.001", "1e-3", "60"}) {
    const Outcome outcome = gradcube({"check", "--most-round-trip", value});
    EXPECT_EQ(outcome.code, 1) << value;
    EXPECT_THAT(outcome.err, HasSubstr("start one with `gradcube up")) << value;
  }
  expect_usage_error({"perf", "allreduce", "--json=maybe"}, "--json takes no value");
}

TEST_F(CommandLine, RefusesAFileInNoFolderBeforeHostsAreAsked) {
  const std::string file = (root_ / "none" / "cube.toml").string();
  expect_usage_error({"setup", "--hosts", "198.18.0.1,198.18.0.2", "--out", file},
                     "nothing can be written in " + (root_ / "none").string());
}

TEST_F(CommandLine, RunNeedsACluster) {
  const Outcome outcome = gradcube({"run", "--", "true"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("start one with `gradcube up"));
}

TEST_F(CommandLine, RefusesALinkThatIsNamedBehindDownOrThatIsToBeDownAndUp) {
  expect_usage_error({"impair", "--down", "2,1:0"}, "\"2,1:0\" is not expected");
  expect_usage_error({"impair", "--down=2,1:0"}, "--down takes no value");
  expect_usage_error({"impair", "--up=1"}, "--up takes no value");
  expect_usage_error({"impair", "--server", "2,1", "--down", "--up"}, "excludes");
}

TEST_F(CommandLine, GuessesWhatAMistypedWordWasMeantToBe) {
  expect_usage_error({"statsu"}, "(did you mean status?)");
  expect_usage_error({"up", "--topolgy", "star:4"}, "there is no flag \"--topolgy\"");
  expect_usage_error({"up", "--topolgy", "star:4"}, "(did you mean --topology?)");
  expect_usage_error({"up", "--topolgy=star:4"}, "(did you mean --topology?)");
  EXPECT_THAT(gradcube({"status", "--dance"}).err, Not(HasSubstr("did you mean")));
}

TEST_F(CommandLine, TellsOfValuesThatAreMissingOrTooMany) {
  expect_usage_error({"up", "--rate"}, "--rate: a value is missing");
  expect_usage_error({"up", "--mtu", "9000", "--mtu", "1500"}, "--mtu is given more than once");
  expect_usage_error({"status", "now"}, "\"now\" is not expected");
}

TEST_F(CommandLine, RefusesEmptyValues) {
  expect_usage_error({"up", "--cluster", ""}, "--cluster");
  expect_usage_error({"plan", "--server", ""}, "--server");
  expect_usage_error({"plan", "--lcores", ""}, "--lcores");
  expect_usage_error({"perf", "allreduce", "--job", ""}, "--job");
  expect_usage_error({"perf", "allreduce", "--job=", "--check"}, "--job");
  expect_usage_error({"impair", "--loss", "0.1", "--server", ""}, "--server");
  expect_usage_error({"impair", "--loss", "0.1", "--switch", ""}, "--switch");
}

TEST_F(CommandLine, RefusesSecondsThatAreNotANumberInRange) {
  for (const char* seconds : {"nan", "inf", "-1", "1x", "nans", "-1s", "0x10", "1e99", ""}) {
    expect_usage_error({"status", "--watch", seconds}, "--watch");
    expect_usage_error({"perf", "allreduce", "--timeout", seconds}, "--timeout");
  }
}

TEST_F(CommandLine, TakesSecondsWithAUnitToo) {
  CLI::App app;
  double seconds = 0;
  app.add_option("--timeout", seconds)->transform(seconds_in(0.001, 10'000));
  for (const auto& [text, value] : {std::pair("5", 5.0), std::pair("5s", 5.0),
                                    std::pair("500ms", 0.5), std::pair("7200s", 7200.0)}) {
    app.parse(fmt::format("--timeout {}", text));
    EXPECT_EQ(seconds, value) << text;
  }
  EXPECT_THROW(app.parse("--timeout 10001s"), CLI::ValidationError);
  expect_usage_error({"check", "--most-round-trip", "0"}, "in 1us..60s");
}

TEST_F(CommandLine, NamesTheSameLeastRateEverywhere) {
  for (const char* rate : {"1kbit", "500kbit", "999999bit"}) {
    expect_usage_error({"up", "--rate", rate}, "1mbit to 10tbit");
  }
  const Outcome outcome = gradcube({"up", "--rate", "1bit"});
  EXPECT_THAT(outcome.err, Not(HasSubstr("1kbit")));
}

TEST_F(CommandLine, OffersEveryTopologyThatItTakes) {
  for (const char* command : {"up", "plan", "paths"}) {
    EXPECT_THAT(gradcube({command, "--help"}).out, HasSubstr("star:N, torus:n,h or tree:AxB"));
  }
  EXPECT_THAT(gradcube({"up", "--topology", "x"}).err, HasSubstr("torus:n,h"));
}

TEST_F(CommandLine, ShortensAndEscapesForeignTextInItsMessages) {
  const std::string foreign = std::string(20'000, 'x') + "\x1b[2J\nsecond line";
  const std::vector<std::vector<std::string>> lines = {
      {foreign},
      {"status", foreign},
      {"status", "--" + foreign},
      {"status", "--watch", foreign},
      {"up", "--cluster", foreign},
      {"up", "--topology", foreign},
      {"up", "--topology", "bcube:" + foreign},
      {"up", "--rate", foreign},
      {"up", "--rate", "1" + foreign},
      {"up", "--loss", foreign},
      {"up", "--mtu", foreign},
      {"up", "--lcores", foreign},
      {"up", "--idle", foreign},
      {"plan", "--server", foreign},
      {"plan", "--algorithm", foreign},
      {"paths", "--topology", "star:9", "--from", "0", "--to", foreign},
      {"paths", "--topology", "star:9", "--from", "0", "--to", "1", "--without", foreign},
      {"paths", "--topology", "star:9", "--from", "0", "--to", "1", "--without", "2:" + foreign},
      {"perf", foreign},
      {"perf", "allreduce", "--sizes", foreign},
      {"perf", "allreduce", "--dtype", foreign},
      {"perf", "allreduce", "--iterations", foreign},
      {"impair", "--loss", "0.1", "--level", foreign},
  };
  for (const auto& arguments : lines) {
    const Outcome outcome = gradcube(arguments);
    SCOPED_TRACE(arguments.front().substr(0, 20) + " " + arguments.back().substr(0, 20));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_LT(outcome.err.size(), 1000u);
    EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  }
}

TEST_F(CommandLine, FailsWhenItsOutputCannotBeWritten) {
  const std::vector<std::vector<std::string>> lines = {
      {"--help"},         {"--version"}, {"up", "--help"},     {"plan"},
      {"plan", "--json"}, {"doctor"},    {"doctor", "--json"}, {"plan", "--topology", "bcube:8,3"},
  };
  for (const auto& arguments : lines) {
    const Outcome outcome = gradcube(arguments, "/dev/full");
    SCOPED_TRACE(testing::PrintToString(arguments));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("cannot write to standard output: No space left on device"));
  }
}

TEST_F(CommandLine, WithoutAClusterNamesTheCommandThatStartsOne) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"perf", "allreduce"},
                                                    {"perf", "allreduce", "--json"},
                                                    {"status"},
                                                    {"status", "--json"},
                                                    {"impair", "--loss", "0.1"}}) {
    const Outcome outcome = gradcube(arguments);
    SCOPED_TRACE(testing::PrintToString(arguments));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "gradcube: no cluster runs in " + (root_ / "run").string() +
                               ": start one with `gradcube up --topology bcube:3,2`\n");
  }
  const Outcome down = gradcube({"down"});
  EXPECT_EQ(down.code, 1);
  EXPECT_THAT(down.err, HasSubstr("nothing to end"));
}

TEST_F(CommandLine, DownCleansUpAfterADaemonThatDied) {
  fs::create_directory(root_ / "run");
  fs::permissions(root_ / "run", fs::perms::owner_all);
  std::ofstream(root_ / "run" / "control.sock") << "";
  std::ofstream(root_ / "run" / "gradcubed.lock") << "4711\n";
  const std::string log = (root_ / "run" / "gradcubed.log").string();
  const Outcome status = gradcube({"status"});
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.err, HasSubstr("its daemon has ended"));
  EXPECT_THAT(status.err, HasSubstr(log));
  const Outcome down = gradcube({"down"});
  EXPECT_EQ(down.code, 0);
  EXPECT_THAT(down.out, HasSubstr(log));
  EXPECT_FALSE(fs::exists(root_ / "run" / "control.sock"));
  EXPECT_EQ(gradcube({"down"}).code, 1);
}

TEST_F(CommandLine, PlanShowsTheSharesAndTheBoundOfLinksWithRates) {
  const auto plan_at = [&](const std::string& rate) {
    return gradcube({"plan", "--topology", "bcube:3,2", "--server", "0,0", "--rate", rate});
  };
  EXPECT_THAT(plan_at("level0=200mbit,level1=100mbit").out,
              StartsWith("shares: thread 0 0.8333, thread 1 0.1667\n"
                         "bound: the links of level 0 carry 1.1852 of an all-reduce's buffer at "
                         "200mbit, so 1 MB takes 47.4 ms or more\n"
                         "bml on bcube:3,2"));
  EXPECT_THAT(plan_at("100mbit").out, StartsWith("shares: thread 0 0.5000, thread 1 0.5000\n"));
  expect_usage_error({"plan", "--rate", "level0=1gbit"}, "the rate of level 1 is missing");
  expect_usage_error({"up", "--rate", "level0=1gbit"}, "the rate of level 1 is missing");
}

TEST_F(CommandLine, UpTellsWhenThereIsNoDaemonToStart) {
  const Outcome outcome = gradcube({"up", "--json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("GRADCUBED names /nowhere/gradcubed"));
}

TEST_F(CommandLine, HelpAndVersionGoToStandardOutput) {
  const std::string help = output({"--help"});
  for (const std::string& command : commands_of(help)) {
    const Outcome outcome = gradcube({command, "--help"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Example"));
    EXPECT_THAT(outcome.err, IsEmpty());
  }
  EXPECT_THAT(gradcube({"--version"}).out, StartsWith("gradcube "));
  EXPECT_THAT(help, HasSubstr("$GRADCUBE_RUN"));
}

}  // namespace
}  // namespace gradcube::cli
