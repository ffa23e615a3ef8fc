#include "control/status/merged_status.h"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/status/form.h"
#include "control/status/merged_jobs.h"

namespace gradcube::control::status {
namespace {

// A job as the daemon of server [0,digit] knows it.
Json job(unsigned digit, const char* state, unsigned submitted, unsigned completed) {
  return Json::parse(R"({"name":"train","id":7,"epoch":1,"why":"","lanes":[{"algorithm":"bml"}],
    "weight":1,"members":[[0,0],[0,1],[0,2]],"window":16,"packets_reserved_bytes":1000,
    "waiting_for":[],"waiting_ms":0})")
      .patch({{{"op", "add"}, {"path", "/state"}, {"value", state}},
              {{"op", "add"}, {"path", "/collectives"}, {"value", completed}},
              {{"op", "add"},
               {"path", "/trainers"},
               {"value",
                {{{"address", {0, digit}}, {"submitted", submitted}, {"completed", completed}}}}}});
}

TEST(MergedJobs, HaveTheTrainersOfAllServersInTheirOrder) {
  const Json jobs = merged_jobs({job(2, "running", 5, 5), job(0, "running", 5, 4)});
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["trainers"].size(), 2u);
  EXPECT_EQ(jobs[0]["trainers"][0]["address"], Json({0, 0}));
  EXPECT_EQ(jobs[0]["collectives"], 4);
  EXPECT_EQ(jobs[0]["packets_reserved_bytes"], 2000);
  EXPECT_EQ(jobs[0]["window"], 16);
}

TEST(MergedJobs, KeepJobsApartThatDifferInNameOrIdOrOptions) {
  const std::map<std::string, Json> others = {
      {"name", "other"},
      {"owner", "user 1001"},
      {"id", 8},
      {"lanes", Json::array({Json({{"algorithm", "ring"}})})},
      {"weight", 2},
      {"reproducible", true},
      {"members", Json::array({Json({0, 1}), Json({0, 2})})},
      {"trainers_per_server", 2}};
  for (const auto& [key, value] : others) {
    Json other = job(1, "gathering", 0, 0);
    other[key] = value;
    EXPECT_EQ(merged_jobs({job(0, "gathering", 0, 0), other}).size(), 2u) << key;
  }
}

TEST(MergedJobs, WaitForMembersThatHaveNotJoined) {
  const Json jobs = merged_jobs({job(0, "gathering", 0, 0), job(2, "gathering", 0, 0)});
  EXPECT_EQ(jobs[0]["waiting_for"], Json::array({Json({0, 1})}));
  EXPECT_TRUE(jobs[0]["waiting_ms"].is_null()) << "no daemon knows";
}

TEST(MergedJobs, WaitForTrainersThatAreBehind) {
  Json jobs =
      merged_jobs({job(0, "running", 6, 5), job(1, "running", 5, 5), job(2, "running", 6, 5)});
  EXPECT_EQ(jobs[0]["waiting_for"], Json::array({Json({0, 1})}));
  jobs = merged_jobs({job(0, "running", 5, 5), job(1, "running", 5, 5)});
  EXPECT_TRUE(jobs[0]["waiting_for"].empty()) << "nobody waits";
  EXPECT_EQ(jobs[0]["waiting_ms"], 0);
}

// A trainer may have submitted more than the others in one lane, and be late in another.
TEST(MergedJobs, WaitForTrainersThatAreBehindInALane) {
  Json lanes = Json::array({{{"algorithm", "bml"}}, {{"algorithm", "ring"}}});
  Json ahead = job(0, "running", 3, 2);
  Json late = job(1, "running", 9, 3);
  for (Json* one : {&ahead, &late}) (*one)["lanes"] = lanes;
  ahead["trainers"][0].update({{"submitted_by_lane", {2, 1}}, {"completed_by_lane", {1, 1}}});
  late["trainers"][0].update({{"submitted_by_lane", {1, 8}}, {"completed_by_lane", {1, 2}}});
  Json jobs = merged_jobs({ahead, late});
  EXPECT_EQ(jobs[0]["waiting_for"], Json::array({Json({0, 0}), Json({0, 1})}));
  EXPECT_EQ(jobs[0]["collectives"], 2) << "one of each lane";

  // Counts of a daemon that tells only sums, or of other lanes than the job has.
  for (const Json& of_lanes : {Json(), Json::array({1}), Json::array({1, 8, 1})}) {
    late["trainers"][0].erase("submitted_by_lane");
    if (!of_lanes.is_null()) late["trainers"][0]["submitted_by_lane"] = of_lanes;
    EXPECT_TRUE(merged_jobs({ahead, late})[0]["waiting_for"].empty()) << of_lanes;
  }
}

TEST(MergedJobs, NameAServerOnceHoweverManyOfItsTrainersAreLate) {
  Json two = job(1, "running", 5, 5);
  two["trainers"].push_back(two["trainers"][0]);
  const Json jobs = merged_jobs({job(0, "running", 6, 5), two});
  EXPECT_EQ(jobs[0]["waiting_for"], Json::array({Json({0, 1})}));
}

TEST(MergedJobs, AreInTheFurthestStateAndSayWhy) {
  Json stopping = job(1, "stopping", 5, 5);
  stopping["why"] = "a trainer left";
  stopping["epoch"] = 3;
  const Json jobs = merged_jobs({job(0, "running", 5, 5), stopping, job(2, "running", 5, 5)});
  EXPECT_EQ(jobs[0]["state"], "stopping");
  EXPECT_EQ(jobs[0]["why"], "a trainer left");
  EXPECT_EQ(jobs[0]["epoch"], 3);
}

std::vector<ServerReport> three_servers() {
  std::vector<ServerReport> servers(3);
  for (unsigned server = 0; server < 3; ++server) {
    servers[server] = {server, "/run/server-" + std::to_string(server) + ".sock",
                       static_cast<pid_t>(100 + server), nullptr, ""};
    servers[server].status = {
        {"window", 16},
        {"lcores", {server % 2}},
        {"stalls", {server}},
        {"memory", {{"daemon_bytes", 100}, {"users", {{{"uid", 0}, {"bytes", 10 + server}}}}}},
        {"servers", {{{"address", {server}}, {"trainers", 1}, {"ports", {{{"level", 0}}}}}}},
        {"jobs", Json::array()},
        {"hubs", {{{"job", "train"}, {"address", {server}}}}},
        {"flow_count", 1},
        {"flows", {{{"job", "train"}}}},
        {"counters", {{"resent", server}, {"dropped", {{"crc", 1}}}}}};
  }
  return servers;
}

Json merged(const std::vector<ServerReport>& servers) {
  ClusterSettings settings;
  settings.topology = parse_topology("star:3", "");
  settings.fabric = FabricKind::veth;
  return merged_status({{"pid", 1}, {"impaired_links", Json::array()}, {"switches", Json::array()}},
                       settings, servers);
}

TEST(MergedStatus, AddsUpWhatCountsAndJoinsWhatLists) {
  std::vector<ServerReport> servers = three_servers();
  servers[1].status["pid"] = 999;
  const Json status = merged(servers);
  EXPECT_EQ(status["pid"], 1);
  EXPECT_EQ(status["fabric"], "veth");
  EXPECT_EQ(status["window"], 16);
  EXPECT_EQ(status["counters"], Json({{"resent", 3}, {"dropped", {{"crc", 3}}}}));
  EXPECT_EQ(status["memory"]["daemon_bytes"], 300);
  EXPECT_EQ(status["memory"]["users"], Json::array({Json({{"uid", 0}, {"bytes", 33}})}));
  EXPECT_EQ(status["lcores"], Json({0, 1}));
  EXPECT_EQ(status["stalls"], Json({2, 1})) << "of servers 0 and 2, and of server 1";
  EXPECT_EQ(status["flows"].size(), 3u);
  EXPECT_EQ(status["flow_count"], 3u);
  ASSERT_EQ(status["hubs"].size(), 3u);
  EXPECT_EQ(status["hubs"][1]["address"], Json::array({1}));
  EXPECT_TRUE(status["switches"].empty());
  ASSERT_EQ(status["servers"].size(), 3u);
  EXPECT_EQ(status["servers"][2]["pid"], 102);
  EXPECT_EQ(status["servers"][1]["pid"], 999) << "of one that was started in its place";
  EXPECT_EQ(status["servers"][2]["trainers"], 1);
  EXPECT_EQ(status["servers"][2]["socket"], "/run/server-2.sock");
  EXPECT_FALSE(status["servers"][2].contains("why"));
}

TEST(MergedStatus, HasTheSumsOfControlThreadsAndTheLongestOfTheirSteps) {
  std::vector<ServerReport> servers = three_servers();
  servers[0].status["control"] = {{"steps", 5}, {"longest_step_ms", 1.5}, {"put_off", 1}};
  servers[2].status["control"] = {{"steps", 7}, {"longest_step_ms", 0.5}, {"put_off", 2}};
  EXPECT_EQ(merged(servers)["control"],
            Json({{"steps", 12}, {"longest_step_ms", 1.5}, {"put_off", 3}}));
}

TEST(MergedStatus, TakesWhatOneOrAllSayOfFieldsThatNobodyKnows) {
  std::vector<ServerReport> servers = three_servers();
  servers[1].status["new"] = "one's";
  servers[2].status["new"] = "another's";
  for (unsigned server = 0; server < 3; ++server) servers[server].status["memory"]["new"] = server;
  for (int i = 0; i < 1000; ++i) servers[0].status["counters"]["x" + std::to_string(i)] = 1;
  const Json status = merged(servers);
  EXPECT_EQ(status["new"], "one's");
  EXPECT_EQ(status["memory"]["new"], 3);
  EXPECT_LE(status["counters"].size(), 300U);
  EXPECT_TRUE(status["counters"].contains("dropped"));
}

TEST(MergedStatus, ListsAServerThatDoesNotAnswer) {
  std::vector<ServerReport> servers = three_servers();
  servers[0].status = nullptr;
  servers[0].why = "its daemon ended";
  servers[0].ended = true;
  const Json status = merged(servers);
  ASSERT_EQ(status["servers"].size(), 3u);
  EXPECT_EQ(status["servers"][0], Json({{"address", {0}},
                                        {"socket", "/run/server-0.sock"},
                                        {"pid", 100},
                                        {"why", "its daemon ended"},
                                        {"ended", true}}));
  EXPECT_EQ(status["counters"]["resent"], 3);
  EXPECT_EQ(status["window"], 16) << "of another";
}

TEST(MergedStatus, SaysOfNoServerThatAnswersThatItDoesNot) {
  std::vector<ServerReport> servers = three_servers();
  servers[1].status["servers"][0].update({{"why", "its daemon ended"}, {"ended", true}});
  const Json status = merged(servers);
  EXPECT_EQ(status["servers"][1]["trainers"], 1);
  for (const char* field : {"why", "ended"}) {
    EXPECT_FALSE(status["servers"][1].contains(field)) << field;
  }
}

TEST(MergedStatus, IsWholeWithoutAnyAnswer) {
  std::vector<ServerReport> servers = three_servers();
  for (ServerReport& server : servers) server.status = nullptr;
  const Json status = merged(servers);
  EXPECT_TRUE(status["window"].is_null());
  EXPECT_TRUE(status["jobs"].empty());
  EXPECT_EQ(status["servers"].size(), 3u);
}

}  // namespace
}  // namespace gradcube::control::status
