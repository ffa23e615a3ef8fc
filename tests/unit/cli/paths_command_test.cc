// `gradcube paths`: what it prints, and what it refuses. Which paths there are is tested in
// tests/unit/bcube_forwarding/path_set_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/plan/measured_paths.h"
#include "control/base/errors.h"
#include "control/plan/base/topology.h"
#include "control/settings/link_rates.h"
#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

class PathsCommand : public CommandLine {
 protected:
  static std::vector<std::string> paths_on(const std::string& topology, const std::string& from,
                                           const std::string& to,
                                           const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"paths", "--topology", topology, "--from",
                                          from,    "--to",       to};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  void expect_output(const std::vector<std::string>& arguments, const std::string& expected) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    EXPECT_EQ(output(arguments), expected);
  }
};

TEST_F(PathsCommand, LeadsAroundAbsentServers) {
  expect_output(paths_on("bcube:4,2", "0,1", "2,2", {"--absent", "2,1 0,2"}),
                "bcube:4,2, from [0,1] to [2,2]: 2 of 2 parallel paths\n"
                "hops  levels  servers\n"
                "   3  0 1 0   [0,1] [0,0] [2,0] [2,2]\n"
                "   3  1 0 1   [0,1] [1,1] [1,2] [2,2]\n");
  expect_usage_error(paths_on("bcube:4,2", "0,1", "2,1", {"--absent", "2,1"}),
                     "--to \"2,1\" is absent: the cluster has no server at this address");
  expect_usage_error({"paths", "--from", "0,0", "--to", "0,1", "--absent", "1,1"},
                     "--absent: the running cluster has its own absent servers");
}

TEST_F(PathsCommand, PrintsOneJsonObject) {
  expect_output(paths_on("bcube:3,2", "0,0", "2,1", {"--json"}),
                R"({"paths":[{"servers":[[0,0],[0,1],[2,1]],"levels":[0,1],"ports":[0,1],)"
                R"("far_ports":[0,1]},{"servers":[[0,0],[2,0],[2,1]],"levels":[1,0],)"
                R"("ports":[1,0],"far_ports":[1,0]}]})"
                "\n");
}

TEST_F(PathsCommand, PrintsALineForEachPath) {
  expect_output(paths_on("bcube:3,2", "0,0", "0,2"),
                "bcube:3,2, from [0,0] to [0,2]: 2 of 2 parallel paths\n"
                "hops  levels  servers\n"
                "   1  0       [0,0] [0,2]\n"
                "   3  1 0 1   [0,0] [1,0] [1,2] [0,2]\n");
}

TEST_F(PathsCommand, MarksTheSubstitutesOfPathsThatAreBroken) {
  expect_output(paths_on("bcube:3,2", "0,0", "0,2", {"--without", "1,0"}),
                "bcube:3,2, from [0,0] to [0,2]: 2 of 2 parallel paths\n"
                "hops  levels  servers\n"
                "   1  0       [0,0] [0,2]\n"
                "   3  1 0 1   [0,0] [2,0] [2,2] [0,2]  substitute\n");
  expect_output(paths_on("bcube:3,2", "0,0", "2,1", {"--without", "0,1"}),
                "bcube:3,2, from [0,0] to [2,1]: 2 of 2 parallel paths\n"
                "hops  levels   servers\n"
                "   2  1 0      [0,0] [2,0] [2,1]\n"
                "   4  0 1 0 1  [0,0] [0,2] [1,2] [1,1] [2,1]  substitute\n");
  expect_output(paths_on("bcube:3,2", "0,0", "2,1", {"--without", "0,1", "--without", "[2,0]:1"}),
                "bcube:3,2, from [0,0] to [2,1]: 2 of 2 parallel paths\n"
                "hops  levels  servers\n"
                "   3  0 1 0   [0,0] [0,2] [2,2] [2,1]  substitute\n"
                "   3  1 0 1   [0,0] [1,0] [1,1] [2,1]  substitute\n");
}

TEST_F(PathsCommand, ALinkThatIsDownBreaksOnlyWhatCrossesIt) {
  const auto without = [&](const std::string& link) {
    return gradcube(paths_on("bcube:3,2", "0,0", "2,1", {"--without", link})).out;
  };
  EXPECT_EQ(without("0,1:0"), without("0,1")) << "both paths over [0,1] go there over level 0";
  EXPECT_EQ(without("1,2"), gradcube(paths_on("bcube:3,2", "0,0", "2,1")).out)
      << "no path goes through [1,2]";
  EXPECT_EQ(without("0,0:1"),
            "bcube:3,2, from [0,0] to [2,1]: 1 of 2 parallel paths\n"
            "hops  levels  servers\n"
            "   2  0 1     [0,0] [0,1] [2,1]\n");
}

TEST_F(PathsCommand, SaysWhenNoPathIsLeft) {
  const std::vector<std::string> down = {"--without", "2,1:0", "--without", "2,1:1"};
  expect_output(paths_on("bcube:3,2", "0,0", "2,1", down),
                "bcube:3,2, from [0,0] to [2,1]: 0 of 2 parallel paths\n"
                "no path is left: what --without names breaks all of them\n");
  expect_output(paths_on("bcube:3,2", "0,0", "2,1", {"--without", "0,0", "--json"}),
                "{\"paths\":[]}\n");
}

TEST_F(PathsCommand, SaysWhenTheServersAreTooFarApart) {
  expect_output(paths_on("torus:18,1", "0", "9"),
                "torus:18,1, from [0] to [9]: 0 of 0 parallel paths\n"
                "[0] and [9] are 9 hops apart, and a path has at most 8\n");
  EXPECT_THAT(gradcube(paths_on("torus:18,1", "0", "8")).out,
              testing::Not(testing::HasSubstr("apart")));
  const std::string header = "torus:12,1, from [0] to [2]: 0 of 0 parallel paths\n";
  const std::string why =
      "no path of 8 hops or fewer leads there over servers that are not absent\n";
  expect_output(paths_on("torus:12,1", "0", "2", {"--absent", "1"}), header + why);
  expect_output(paths_on("torus:12,1", "0", "2", {"--absent", "1", "--without", "2"}),
                header + why);
}

TEST_F(PathsCommand, KnowsThatAStarHasOnePath) {
  expect_output(paths_on("star:9", "0", "8", {"--json"}),
                R"({"paths":[{"servers":[[0],[8]],"levels":[0],"ports":[0],"far_ports":[0]}]})"
                "\n");
}

TEST_F(PathsCommand, RefusesWhatIsNoPairOfServers) {
  expect_usage_error(paths_on("bcube:3,2", "2,1", "[2,1]"),
                     "--from and --to are both server [2,1]; expected two different servers");
  expect_usage_error(paths_on("bcube:3,2", "3,0", "2,1"), "--from \"3,0\" is not a server's");
  expect_usage_error(paths_on("bcube:3,2", "0,0", "2"), "--to \"2\" is not a server's address");
  expect_usage_error(paths_on("bcube:3,2", "0,0", ""), "--to");
  expect_usage_error({"paths", "--topology", "bcube:3,2", "--to", "2,1"}, "--from is required");
  expect_usage_error({"paths", "--topology", "bcube:3,2", "--from", "2,1"}, "--to is required");
}

TEST_F(PathsCommand, MeasuresOnlyWhereAClusterRuns) {
  const Outcome outcome = gradcube({"paths", "--from", "0,0", "--to", "2,1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, testing::HasSubstr("no cluster"));
  expect_usage_error({"paths", "--from", "0,0", "--to", "2,1", "--without", "0,1"},
                     "--without is for the paths of a topology");
}

TEST(MeasuredPaths, AreReadFromTheDaemonsAnswerTheShortestFirst) {
  const auto space = control::parse_topology("bcube:3,2", "test").space();
  const auto paths = read_measured_paths(nlohmann::json::parse(R"({"paths":[
        {"hops":[[1,1],[0,1],[1,0]],"state":"silent","round_trip_ns":null,"left_bps":null},
        {"hops":[[0,1]],"state":"answers","round_trip_ns":5000,"left_bps":70}]})"),
                                         space, 0, 1);
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(paths[0].route.size(), 1u);
  EXPECT_EQ(paths[0].state, "answers");
  EXPECT_EQ(paths[0].round_trip_ns, 5000u);
  EXPECT_EQ(paths[0].bits_per_second_left, 70u);
  EXPECT_EQ(paths[1].state, "silent");
  EXPECT_EQ(paths[1].round_trip_ns, std::nullopt);
}

TEST(MeasuredPaths, GoOverEachPortOfAServerWithSeveral) {
  const control::LinkRates rates = control::parse_link_rates("1gbit,server2=2x1gbit", "test");
  const control::Topology topology = rates.on(control::parse_topology("star:3", "test"));
  const auto read = [&](const char* hops) {
    return read_measured_paths(
        nlohmann::json::parse(
            std::string(R"({"paths":[{"state":"?","round_trip_ns":1,"left_bps":1,"hops":)") + hops +
            "}]}"),
        topology.space(), 0, 2);
  };
  EXPECT_EQ(read("[[0,2]]").size(), 1u);
  EXPECT_EQ(read("[[0,5]]").size(), 1u) << "its second port";
  EXPECT_THROW(read("[[0,8]]"), control::SetupError) << "it has no third";
  EXPECT_THROW(read("[[0,4],[0,2]]"), control::SetupError) << "server 1 has no second";
}

TEST(MeasuredPaths, AreRefusedWhereTheyLeadNowhere) {
  const auto space = control::parse_topology("bcube:3,2", "test").space();
  for (const char* hops : {"[]", "[[0,0]]", "[[0,2]]", "[[2,1]]", "[[0,3]]", "[[0]]", "[0,1]",
                           "[[0,-1]]", "[[0,1.5]]", "[[0,1],[1,1]]", R"([["0","1"]])",
                           "[[0,1],[0,2],[0,1],[0,2],[0,1],[0,2],[0,1],[0,2],[0,1]]"}) {
    const auto answer = nlohmann::json::parse(
        std::string(R"({"paths":[{"state":"answers","hops":)") + hops + "}]}");
    EXPECT_THROW(read_measured_paths(answer, space, 0, 1), control::SetupError) << hops;
  }
}

TEST_F(PathsCommand, NamesThePortsOnATorus) {
  expect_output(paths_on("torus:4,2", "0,0", "0,1"),
                "torus:4,2, from [0,0] to [0,1]: 4 of 4 parallel paths\n"
                "hops  ports  servers\n"
                "   1  0      [0,0] [0,1]\n"
                "   3  1 1 1  [0,0] [0,3] [0,2] [0,1]\n"
                "   3  2 0 3  [0,0] [1,0] [1,1] [0,1]\n"
                "   3  3 0 2  [0,0] [3,0] [3,1] [0,1]\n");
  expect_output(paths_on("torus:5,1", "0", "3", {"--json"}),
                R"({"paths":[{"servers":[[0],[4],[3]],"levels":[0,0],"ports":[1,1],)"
                R"("far_ports":[0,0]},{"servers":[[0],[1],[2],[3]],"levels":[0,0,0],)"
                R"("ports":[0,0,0],"far_ports":[1,1,1]}]})"
                "\n");
}

TEST_F(PathsCommand, ACableOfATorusThatIsDownIsDownAtBothEnds) {
  const auto without = [&](const std::string& link) {
    return gradcube(paths_on("torus:5,1", "0", "1", {"--without", link})).out;
  };
  const std::string long_way =
      "torus:5,1, from [0] to [1]: 1 of 2 parallel paths\n"
      "hops  ports    servers\n"
      "   4  1 1 1 1  [0] [4] [3] [2] [1]\n";
  EXPECT_EQ(without("0:0"), long_way);
  EXPECT_EQ(without("1:1"), long_way);
  EXPECT_NE(without("0:1"), long_way);
  expect_usage_error(paths_on("torus:5,1", "0", "1", {"--without", "0:2"}),
                     "--without \"0:2\": the port \"2\": expected a whole number in 0..1");
}

TEST_F(PathsCommand, RefusesTopologiesThatThereAreNot) {
  expect_usage_error(paths_on("torus:2,2", "0,0", "1,1"), "n is 2, but it is 3..256");
  expect_usage_error(paths_on("bcube:3", "0,0", "2,1"), "--topology");
}

TEST_F(PathsCommand, RefusesFailuresOfWhatDoesNotExist) {
  const auto without = [](const std::string& what) {
    return paths_on("bcube:3,2", "0,0", "2,1", {"--without", what});
  };
  expect_usage_error(without("0,3"), "--without \"0,3\" is not a server's address");
  expect_usage_error(without("0,1:2"),
                     "--without \"0,1:2\": the port \"2\": expected a whole number in 0..1");
  for (const char* what : {"", ":", ":1", "0,1:", "0,1:-1", "0,1:x", "0,1:0:0"}) {
    expect_usage_error(without(what), "--without");
  }
  expect_usage_error(paths_on("bcube:3,2", "0,0", "2,1", {"--without", "0,1", "0,2"}),
                     "\"0,2\" is not expected");
}

}  // namespace
}  // namespace gradcube::cli
