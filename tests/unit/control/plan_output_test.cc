#include "control/plan/plan_output.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "control/plan/algorithms.h"
#include "tests/unit/control/plans.h"

namespace gradcube::control {
namespace {

using nlohmann::json;

std::string written(const Plan& plan, std::optional<ServerId> server) {
  const std::vector<Lcore> lcores = {{4, 0}, {6, 0}};
  std::ostringstream out;
  write_plan_json(out, plan, Assignment::all_servers(plan, lcores), server);
  return out.str();
}

TEST(PlanJson, HasTheFormThatToolsRelyOn) {
  const std::string text = written(plan_of("bml", "bcube:3,2"), 7);
  EXPECT_EQ(text.back(), '\n');
  const json plan = json::parse(text);
  EXPECT_EQ(plan["topology"],
            json::parse(R"({"spec":"bcube:3,2","kind":"bcube","n":3,"k":2,"servers":9})"));
  EXPECT_EQ(plan["algorithm"], "bml");
  EXPECT_EQ(plan["pieces"], 18);
  ASSERT_EQ(plan["servers"].size(), 1u);
  const json& server = plan["servers"][0];
  EXPECT_EQ(server["address"], json::parse("[2,1]"));
  ASSERT_EQ(server["threads"].size(), 2u);
  EXPECT_EQ(server["threads"][1]["thread"], 1);
  EXPECT_EQ(server["threads"][1]["lcore"], 6);
  EXPECT_EQ(server["threads"][1]["weight"], 1);
  EXPECT_EQ(server["threads"][1]["owns"], json::parse("[1,2,1]"));
  const json& steps = server["threads"][0]["steps"];
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0], json::parse(R"({"stage":"aggregation","step":0,"level":0,"exchanges":[
    {"peer":[2,0],"send":[[0,0,0],[0,1,0],[0,2,0]],"receive":[[0,0,1],[0,1,1],[0,2,1]]},
    {"peer":[2,2],"send":[[0,0,2],[0,1,2],[0,2,2]],"receive":[[0,0,1],[0,1,1],[0,2,1]]}]})"));
  EXPECT_EQ(steps[2], json::parse(R"({"stage":"broadcast","step":0,"level":1,"exchanges":[
    {"peer":[0,1],"send":[[0,2,1]],"receive":[[0,0,1]]},
    {"peer":[1,1],"send":[[0,2,1]],"receive":[[0,1,1]]}]})"));
}

TEST(PlanJson, ListsAllServersAndAllExchangesOfThePlan) {
  const Plan plan = plan_of("bml", "bcube:2,3");
  const json parsed = json::parse(written(plan, std::nullopt));
  ASSERT_EQ(parsed["servers"].size(), 8u);
  for (ServerId s = 0; s < 8; ++s) {
    EXPECT_EQ(parsed["servers"][s]["address"], json(address_json(plan.space(), s)));
    for (unsigned t = 0; t < 3; ++t) {
      const json& steps = parsed["servers"][s]["threads"][t]["steps"];
      ASSERT_EQ(steps.size(), 6u);
      for (unsigned i = 0; i < 6; ++i) {
        const Stage stage = i < 3 ? Stage::aggregation : Stage::broadcast;
        EXPECT_EQ(steps[i]["stage"], std::string(stage_name(stage)));
        EXPECT_EQ(steps[i]["step"], i % 3);
        const auto exchanges = plan.exchanges(s, t, stage, i % 3);
        ASSERT_EQ(steps[i]["exchanges"].size(), exchanges.size());
        for (size_t x = 0; x < exchanges.size(); ++x) {
          json send = json::array();
          exchanges[x].send.for_each([&](PieceId piece) {
            json entry = json(address_json(plan.space(), piece.owner));
            entry.insert(entry.begin(), piece.thread);
            send.push_back(entry);
          });
          EXPECT_EQ(steps[i]["exchanges"][x]["send"], send);
        }
      }
    }
  }
}

TEST(PlanJson, StaysSmallForOneServerOf65536) {
  const std::string text = written(plan_of("bml", "bcube:16,4"), 65535);
  EXPECT_LT(text.size(), 4u << 20);
  const json plan = json::parse(text);
  EXPECT_EQ(plan["topology"]["servers"], 65536);
  EXPECT_EQ(plan["pieces"], 4 * 65536);
  const json& steps = plan["servers"][0]["threads"][0]["steps"];
  // 4096 pieces are one entry, null standing for every digit; 256 are listed.
  EXPECT_EQ(steps[0]["exchanges"][1]["send"], json::parse("[[0,null,null,null,1]]"));
  EXPECT_EQ(steps[1]["exchanges"][0]["send"].size(), 256u);
  EXPECT_EQ(steps[1]["exchanges"][0]["send"][255], json::parse("[0,15,15,0,15]"));
}

TEST(PlanText, ShowsThePapersExample) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const std::vector<Lcore> lcores = {{0, 0}};
  std::ostringstream out;
  write_plan_text(out, plan, Assignment::all_servers(plan, lcores), 0);
  const std::string text = out.str();
  EXPECT_NE(text.find("bml on bcube:3,2: 9 servers, 2 threads, 18 pieces"), std::string::npos);
  EXPECT_NE(text.find("thread 0 on lcore 0, owns <0,0,0>"), std::string::npos);
  EXPECT_NE(text.find("<0,*,2>          <0,*,0>"), std::string::npos) << text;
  EXPECT_EQ(text.find("server [0,1]"), std::string::npos);
}

TEST(PlanText, ShowsTheServersOfAGridByTheirAddresses) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Placement column = Placement::of(topology, std::vector<ServerId>{2, 8}, "test");
  const Plan plan = make_plan("bml", topology, column, "test");
  const std::vector<Lcore> lcores = {{0, 0}};
  std::ostringstream out;
  write_plan_text(out, plan, Assignment::all_servers(plan, lcores), std::nullopt);
  const std::string text = out.str();
  EXPECT_NE(text.find("bml on bcube:3,2: 2 servers, 1 thread, 2 pieces, 1 step"), std::string::npos)
      << text;
  EXPECT_NE(text.find("server [0,2]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("aggregation     0     1  [2,2]        <0,1>            <0,0>"),
            std::string::npos)
      << text;
}

TEST(PlanText, ShowsARingRoundByRound) {
  const Plan plan = make_plan("hips:ring", parse_topology("star:3", "test"), "test");
  const std::vector<Lcore> lcores = {{0, 0}};
  std::ostringstream out;
  write_plan_text(out, plan, Assignment::all_servers(plan, lcores), 0);
  const std::string text = out.str();
  EXPECT_NE(
      text.find("aggregation     0     0  [1]          <0,2>            <0,1>                  "
                "1  [2]              0\n"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find("broadcast       0     0  [1]          <0,2>            <0,1>                  "
                "1  [2]              1\n"),
      std::string::npos)
      << text;
}

TEST(PlanJson, ShowsARingRoundByRound) {
  const Plan plan = make_plan("hips:ring", parse_topology("star:3", "test"), "test");
  const json parsed = json::parse(written(plan, 0));
  EXPECT_EQ(parsed["servers"][0]["threads"][0]["steps"][0]["exchanges"], json::parse(R"([
    {"peer":[1],"source":[2],"round":0,"send":[[0,2]],"receive":[[0,1]]},
    {"peer":[1],"source":[2],"round":1,"send":[[0,1]],"receive":[[0,0]]}])"));
}

TEST(PlanJson, HasNoLevelForAStepOverSeveral) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Plan plan("flat", topology, Placement::all(topology), {{1, {{9, 1}}}});
  const json parsed = json::parse(written(plan, 4));
  const json& step = parsed["servers"][0]["threads"][0]["steps"][0];
  EXPECT_TRUE(step["level"].is_null());
  EXPECT_EQ(step["exchanges"].size(), 8u);
  EXPECT_EQ(step["exchanges"][7]["peer"], json::parse("[2,2]"));
  EXPECT_EQ(step["exchanges"][7]["send"], json::parse("[[0,8]]"));
}

}  // namespace
}  // namespace gradcube::control
