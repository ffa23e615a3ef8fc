// `gradcube plan --keys`. How chunks are divided is tested in tests/unit/control/hub/.
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

class PlanKeys : public CommandLine {
 protected:
  std::string file(const std::string& content) {
    const std::string path = (root_ / "keys.json").string();
    std::ofstream(path) << content;
    return path;
  }
  // Three keys, 132 KiB in five chunks.
  std::string keys() {
    return file(R"({"keys":[{"name":"b","elements":16384,"dtype":"float32"},)"
                R"({"name":"a","elements":1024,"dtype":"float32"},)"
                R"({"name":"c","elements":32768,"dtype":"float16"}]})");
  }
  json report(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"plan", "--json", "--keys", keys()});
    return json::parse(output(arguments));
  }
};

TEST_F(PlanKeys, ShowTheLoadOfEveryPathPortAndLcore) {
  const json shown = report({"--topology", "bcube:3,2", "--lcores", "0-1"});
  EXPECT_EQ(shown["bytes"], 132 * 1024);
  EXPECT_EQ(shown["chunks"], 5);
  EXPECT_EQ(shown["paths"].size(), 2u);
  EXPECT_EQ(shown["paths"][0],
            json::parse(R"({"path":0,"thread":0,"port":0,"node":null,"chunks":3,"bytes":69632,)"
                        R"("of_fair_share":1.0303030303030303})"));
  EXPECT_EQ(shown["lcores"][1],
            json::parse(R"({"lcore":1,"queue":1,"node":null,"paths":[1],"chunks":2,"bytes":65536,)"
                        R"("of_fair_share":0.9696969696969697})"));
  EXPECT_EQ(shown["ports"].size(), 2u);
  EXPECT_EQ(shown["nodes"], json::array());
  EXPECT_FALSE(shown.contains("optimizer"));
}

TEST_F(PlanKeys, BindThePortsOfAParameterServerToTheirNodes) {
  const json shown =
      report({"--topology", "star:9", "--rate", "1gbit,server8=2x1gbit", "--algorithm", "ps:8",
              "--lcores", "0-3", "--port-nodes", "0,1", "--lcore-nodes", "1,0,1,0"});
  EXPECT_EQ(shown["paths"][0]["port"], 0);
  EXPECT_EQ(shown["paths"][1]["node"], 1);
  EXPECT_EQ(shown["lcores"][0]["paths"], json::array({1}));
  EXPECT_EQ(shown["lcores"][1]["paths"], json::array({0}));
  EXPECT_EQ(shown["nodes"].size(), 2u);
  EXPECT_EQ(shown["ports"][0]["push_bytes"], 8 * 69632);
}

TEST_F(PlanKeys, ShowTheMemoryOfAnOptimizer) {
  const json shown = report({"--lcores", "0", "--optimizer", "adamw:lr=0.5"});
  EXPECT_EQ(shown["optimizer"]["greatest_share"], 1.0 / 9);
  EXPECT_EQ(shown["optimizer"]["memory_bytes"], 50176 * 12 + 65536);
  EXPECT_EQ(shown["optimizer"]["settings"],
            "adamw:lr=0.5,beta1=0.9,beta2=0.999,eps=1e-08,weight-decay=0.01");
}

TEST_F(PlanKeys, AreATableForPeople) {
  const Outcome outcome = gradcube({"plan", "--keys", keys(), "--lcores", "0", "--chunk", "64Ki",
                                    "--topology", "star:4", "--optimizer", "sgd"});
  EXPECT_EQ(outcome.out,
            "3 keys, 135.2 KB in 3 chunks of 64Ki, by bml on star:4\n\n"
            "path  thread  first port  node  chunks    bytes  of fair share\n"
            "   0       0           0     -       3  135,168         1.0000\n\n"
            "port  bytes in of a push\n"
            "   0            101.4 KB\n\n"
            "lcore  queue  node  paths  chunks    bytes  of fair share\n"
            "    0      0     -      0       3  135,168         1.0000\n\n"
            "sgd:lr=0.01,weight-decay=0: weights and state of 266.2 KB, at most 66.6 KB on each "
            "owner\n");
}

TEST_F(PlanKeys, ShowOfSeveralRootsTheLcoresOfTheBusiest) {
  const std::vector<std::string> roots = {"--lcores",   "0-1",    "--lcore-nodes", "0,1",
                                          "--topology", "star:4", "--algorithm",   "ps:3 1"};
  const json shown = report(roots);
  ASSERT_EQ(shown["paths"].size(), 2U);
  EXPECT_EQ(shown["paths"][0]["root"], "[1]");
  EXPECT_EQ(shown["paths"][1]["root"], "[3]");
  EXPECT_EQ(shown["busiest_root"], "[3]");
  for (const char* table : {"lcores", "nodes"}) {
    EXPECT_EQ(shown[table][0]["bytes"].get<int>() + shown[table][1]["bytes"].get<int>(),
              shown["paths"][1]["bytes"])
        << table;
  }
  EXPECT_EQ(shown["lcores"][0]["paths"], json::array({0}));
  EXPECT_EQ(shown["ports"][0]["push_bytes"], 3 * shown["paths"][1]["bytes"].get<int>());
  EXPECT_FALSE(report({"--topology", "star:4", "--algorithm", "ps"}).contains("busiest_root"));
}

TEST_F(PlanKeys, RefuseAFileThatIsNone) {
  const std::string expected = R"(; expected {"keys": [{"name": "conv1.weight", "elements": 9408, )"
                               R"("dtype": "float32"}, ...]})";
  const auto refuses = [&](const std::string& content, const std::string& what) {
    expect_usage_error({"plan", "--keys", file(content)}, what + expected);
  };
  refuses("", "it is empty");
  refuses("{", "it is no JSON");
  refuses("[]", "it has no list \"keys\"");
  refuses(R"({"keys":[3]})", "key 0 has no \"name\" that is a text");
  refuses(R"({"keys":[{"name":"a","elements":-1,"dtype":"float32"}]})",
          "key 0 has no \"elements\" that is a whole number");
  refuses(R"({"keys":[{"name":"a","elements":1}]})", "key 0 has no \"dtype\" that is a text");
  refuses(R"({"keys":[{"name":"a","elements":1,"dtype":"f32"}]})", "key 0 has the dtype \"f32\"");
  expect_usage_error({"plan", "--keys", file(R"({"keys":[]})")},
                     "there are 0 keys; expected 1 to 65536");
}

TEST_F(PlanKeys, RefuseOptionsThatDoNotFit) {
  expect_usage_error({"plan", "--chunk", "32Ki"}, "--chunk requires --keys");
  expect_usage_error({"plan", "--keys", keys(), "--chunk", "100"}, "chunks of 100 bytes");
  expect_usage_error({"plan", "--keys", keys(), "--verify"}, "excludes");
  expect_usage_error({"plan", "--keys", keys(), "--lcores", "0", "--lcore-nodes", "0,1"},
                     "--lcore-nodes \"0,1\": 2 NUMA nodes for 1 lcores; expected one for each");
  expect_usage_error({"plan", "--keys", keys(), "--port-nodes", "0,"}, "--port-nodes");
  expect_usage_error({"plan", "--keys", keys(), "--optimizer", "adamw:lr=-1"},
                     "--optimizer: lr=-1; expected 0 to 3.4e38");
}

}  // namespace
}  // namespace gradcube::cli
