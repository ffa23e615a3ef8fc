// `gradcube plan` and its --verify. What is proved, and what is found, is tested in
// tests/unit/control/verify_test.cc and verify_sample_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"
#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

class PlanCommand : public CommandLine {};

TEST_F(PlanCommand, ProvesThePlanOfWhatIsThereWhereServersAreAbsent) {
  EXPECT_EQ(
      output({"plan", "--topology", "bcube:4,2", "--absent", "3,1 3,2 3,3", "--verify"}),
      "mesh on bcube:4,2: 13 servers, 13 pieces\n"
      "proved: every piece gets each server's contribution once, and every server every result\n"
      "links: at most 24 pieces on every level, in each direction over both stages\n");
  expect_usage_error({"plan", "--topology", "bcube:4,2", "--absent", "3,1", "--algorithm", "bml"},
                     "algorithm bml: these 15 servers of bcube:4,2 form no grid: [3,1] is missing");
  expect_usage_error({"plan", "--topology", "bcube:4,2", "--absent", "3,1", "--server", "3,1"},
                     "--server \"3,1\" is absent");
  expect_usage_error({"plan", "--absent", "9,9"}, "--absent \"9,9\" is not a server's address");
}

TEST_F(PlanCommand, ProvesASmallPlanAsAWhole) {
  EXPECT_EQ(
      output({"plan", "--verify"}),
      "# on bcube:3,2, as no cluster is running\n"
      "bml on bcube:3,2: 9 servers, 18 pieces\n"
      "proved: every piece gets each server's contribution once, and every server every result\n"
      "links: at most 16 pieces on every level, in each direction over both stages\n");
  EXPECT_EQ(json::parse(output(
                {"plan", "--topology", "star:5", "--algorithm", "ring", "--verify", "--json"})),
            json::parse(R"({"topology":"star:5","algorithm":"ring","servers":5,"pieces":5,)"
                        R"("proof":"exact","link_pieces":[8],"running":false})"));
}

TEST_F(PlanCommand, ProvesALargePlanByASampleThatTheSeedDraws) {
  const std::vector<std::string> arguments = {"plan",     "--topology", "bcube:8,3",
                                              "--verify", "--seed",     "7"};
  const std::string text = output(arguments);
  EXPECT_THAT(text, testing::HasSubstr("drawn by --seed 7\n"));
  EXPECT_THAT(text, testing::HasSubstr("  their links: at most 1,022 pieces on every level,"));
  EXPECT_EQ(output(arguments), text);
  const json report = json::parse(output(
      {"plan", "--topology", "bcube:16,4", "--algorithm", "hips:root", "--verify", "--json"}));
  EXPECT_EQ(report["proof"], "sample");
  EXPECT_EQ(report["servers"], 65536);
  EXPECT_TRUE(report["seed"].is_number_unsigned());
  EXPECT_EQ(report["sampled_servers"].size(), 4u);
  EXPECT_EQ(report["sampled_pieces"].size(), 4u);
}

TEST_F(PlanCommand, CountsThePiecesOfEachLevelWhereTheyDiffer) {
  EXPECT_THAT(
      output({"plan", "--topology", "bcube:4,2", "--algorithm", "halving_doubling", "--verify"}),
      testing::EndsWith("links: at most 6 pieces on level 0, 24 on level 1, in each "
                        "direction over both stages\n"));
}

TEST_F(PlanCommand, CountsWhatTheUplinksOfATreeCarry) {
  EXPECT_THAT(output({"plan", "--topology", "tree:4x4", "--algorithm", "mesh", "--verify"}),
              testing::EndsWith("links: at most 30 pieces on level 0, 96 on level 1, in each "
                                "direction over both stages\n"));
  EXPECT_THAT(output({"plan", "--topology", "tree:4x4", "--rate", "10gbit", "--oversubscription",
                      "8", "--algorithm", "ring"}),
              testing::StartsWith("shares: thread 0 1.0000\n"
                                  "bound: the links of level 1 carry 1.8750 of an all-reduce's "
                                  "buffer at 5gbit, so 1 MB takes 3"));
  EXPECT_THAT(output({"plan", "--why", "100M", "--topology", "tree:4x4", "--rate", "1gbit",
                      "--oversubscription", "8"}),
              testing::HasSubstr("runs blueconnect\n"));
  expect_usage_error({"plan", "--topology", "tree:4x4", "--oversubscription", "4"},
                     "oversubscription 4 is for a tree with one rate");
  expect_usage_error(
      {"plan", "--topology", "tree:4x4", "--rate", "1gbit", "--oversubscription", "0"},
      "--oversubscription");
}

TEST_F(PlanCommand, LeavesLinksOutWhereServersRelay) {
  const json report = json::parse(
      output({"plan", "--topology", "bcube:12,2", "--algorithm", "mesh", "--verify", "--json"}));
  EXPECT_TRUE(report["link_pieces"].is_null());
}

TEST_F(PlanCommand, RefusesWhatDoesNotGoWithAProof) {
  expect_usage_error({"plan", "--seed", "7"}, "--verify");
  expect_usage_error({"plan", "--verify", "--seed", "x"}, "--seed");
  expect_usage_error({"plan", "--verify", "--seed", "-1"}, "a whole number in 0..4294967295");
  expect_usage_error({"plan", "--verify", "--server", "2,1"}, "--server");
  expect_usage_error({"plan", "--verify", "--trainers", "4"}, "--trainers");
  expect_usage_error({"plan", "--verify", "--lcores", "0"}, "--lcores");
}

TEST_F(PlanCommand, SaysThatAutoIsAChoiceOfPlans) {
  for (const char* name : {"auto", "auto:1us,40us", "auto:1us,40us/8"}) {
    expect_usage_error({"plan", "--algorithm", name}, "`gradcube plan --why SIZE` shows which");
    expect_usage_error({"plan", "--verify", "--algorithm", name}, "auto is no plan");
  }
  expect_usage_error({"plan", "--algorithm", "atuo"}, "two-level, or auto");
  EXPECT_THAT(output({"plan", "--help"}), testing::HasSubstr("a job may also ask for auto"));
}

TEST_F(PlanCommand, NamesInItsHelpWhatAJobGetsThatAsksForNoAlgorithm) {
  const std::string help = output({"plan", "--help"});
  const std::size_t begin = help.find("(default: ", help.find("--algorithm"));
  ASSERT_NE(begin, std::string::npos);
  const std::string defaults = help.substr(begin, help.find(')', begin) - begin);
  for (const char* spec : {"star:2", "bcube:3,2", "torus:3,2", "tree:2x2"}) {
    const control::Topology topology = control::parse_topology(spec, "test");
    const control::Placement all = control::Placement::all(topology);
    EXPECT_THAT(defaults, testing::HasSubstr(control::default_algorithm(topology, all))) << spec;
    EXPECT_THAT(defaults, testing::HasSubstr(control::default_algorithm_of_jobs(topology, all)))
        << spec;
  }
}

TEST_F(PlanCommand, TakesEverySeed) {
  for (const char* seed : {"0", "4294967295"}) {
    EXPECT_THAT(output({"plan", "--topology", "bcube:8,3", "--verify", "--seed", seed}),
                testing::HasSubstr(std::string("drawn by --seed ") + seed + "\n"));
  }
}

TEST_F(PlanCommand, PrintsOneJsonObject) {
  const Outcome outcome = gradcube(
      {"plan", "--topology", "bcube:3,2", "--algorithm", "bml", "--json", "--lcores", "0,1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::IsEmpty());
  const auto plan = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(
      plan["topology"],
      nlohmann::json::parse(R"({"spec":"bcube:3,2","kind":"bcube","n":3,"k":2,"servers":9})"));
  EXPECT_EQ(plan["algorithm"], "bml");
  EXPECT_EQ(plan["pieces"], 18);
  ASSERT_EQ(plan["servers"].size(), 9u);
  const auto& thread = plan["servers"][7]["threads"][1];
  EXPECT_EQ(plan["servers"][7]["address"], nlohmann::json({2, 1}));
  EXPECT_EQ(thread["owns"], nlohmann::json({1, 2, 1}));
  EXPECT_EQ(thread["lcore"], 1);
  EXPECT_EQ(thread["steps"].size(), 4u);
}

TEST_F(PlanCommand, OfOneServerIsSmallEvenInALargeCluster) {
  const Outcome outcome =
      gradcube({"plan", "--topology", "bcube:16,4", "--server", "2,1,0,15", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["servers"].size(), 1u);
  EXPECT_LT(outcome.out.size(), 10'000'000u);
}

}  // namespace
}  // namespace gradcube::cli
