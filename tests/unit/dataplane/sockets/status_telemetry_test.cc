#include "dataplane/sockets/status_telemetry.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

using Json = nlohmann::ordered_json;

Json port(unsigned number, std::uint64_t packets, Json down = Json::array()) {
  return {{"level", number},       {"port", number},          {"rate_bps", nullptr},
          {"rx_packets", packets}, {"down", std::move(down)}, {"short_only", Json::array()},
          {"wrong", nullptr}};
}

// Of star:2 with two links each, as it never was.
Json status() {
  Json bad = port(1, 40);
  bad["wrong"] = "hears another level";
  Json job = {{"name", "mnist"},
              {"id", 7},
              {"state", "running"},
              {"lanes", Json::array({{{"algorithm", "bml"}}})},
              {"members", {{2, 0}, {2, 1}}},
              {"trainers", Json::array({{{"pid", 1}}})},
              {"waiting_for", {{2, 1}}},
              {"waiting_ms", nullptr}};
  Json twin = job;
  twin["id"] = 8;
  Json other = job;
  other["name"] = "digits";
  return {{"version", "1"},
          {"topology", {{"kind", "bcube"}, {"n", 3}}},
          {"rate_bps", 100},
          {"mtu", 9000},
          {"lcores", {0, 1}},
          {"memory", {{"pool_bytes", 12}, {"users", Json::array()}}},
          {"servers",
           {{{"address", {2, 0}}, {"trainers", 1}, {"ports", {port(0, 10), port(1, 20)}}},
            {{"address", {2, 1}}, {"trainers", 2}, {"ports", {port(0, 30, {{2, 0}}), bad}}}}},
          {"jobs", {job, twin, other}},
          {"hubs",
           {{{"job", "digits"},
             {"id", 9},
             {"address", {2, 1}},
             {"state", "running"},
             {"members", {{2, 0}, {1, 0}}},
             {"memory_bytes", 640}}}},
          {"counters", {{"segments_sent", 5}, {"dropped", {{"wrong_checksum", 1}}}}}};
}

TEST(StatusView, HasNumbersAndWordsAndCounts) {
  EXPECT_EQ(status_view(status()).dump(),
            R"({"version":"1","rate_bps":100,"mtu":9000,"topology":{"kind":"bcube","n":3},)"
            R"("pool_bytes":12,"servers":2,"links":4,"links_down":1,"links_wrong":1,)"
            R"("jobs":3,"trainers":3,"hubs":1})");
}

TEST(LinksView, NamesPortsByServerAndNumber) {
  const Json all = links_view(status(), "");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all["2-0:1"]["rx_packets"], 20);
  EXPECT_EQ(all["2-1:0"]["down"], Json::array({"2-0"}));
  EXPECT_EQ(links_view(status(), "2-1").size(), 2U);
  EXPECT_EQ(links_view(status(), "2-1:1").dump(),
            R"({"2-1:1":{"level":1,"port":1,"rate_bps":null,"rx_packets":40,"down":[],)"
            R"("short_only":[],)"
            R"("wrong":"hears another level"}})");
  for (const char* wrong : {"2", "2-1:", "2-1:2", "[2,1]", "2-1:1 ", "\xff"}) {
    EXPECT_THROW(links_view(status(), wrong), control::UsageError) << wrong;
  }
}

TEST(JobsView, NamesJobsAndTellsTwinsApart) {
  const Json all = jobs_view(status(), "");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all["mnist#8"]["id"], 8);
  EXPECT_EQ(jobs_view(status(), "mnist").size(), 2U);
  EXPECT_EQ(jobs_view(status(), "digits").dump(),
            R"({"digits":{"name":"digits","id":7,"state":"running","waiting_ms":null,"servers":2,)"
            R"("trainers":1,"waiting_for":["2-1"]}})");
  EXPECT_THROW(jobs_view(status(), "nobody"), control::UsageError);
}

TEST(HubsView, NamesHubsByTheirJobs) {
  EXPECT_EQ(hubs_view(status(), "").dump(),
            R"({"digits":{"job":"digits","id":9,"state":"running","memory_bytes":640,)"
            R"("aggregator":"2-1","servers":2}})");
  Json twins = status();
  twins["hubs"].push_back(twins["hubs"][0]);
  twins["hubs"][1]["id"] = 10;
  EXPECT_EQ(hubs_view(twins, "digits")["digits#10"]["id"], 10);
  EXPECT_THROW(hubs_view(status(), "mnist"), control::UsageError);
}

TEST(StatusTelemetry, TakesOneStatusForAllWhoAskWithinATenthOfASecond) {
  std::string name = std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  ControlLoop loop;
  TelemetryServer server(loop, std::filesystem::path(name) / "s", "1");
  int taken = 0;
  StatusTelemetry::SteadyClock::time_point now;
  const StatusTelemetry telemetry(
      server,
      [&] {
        ++taken;
        Json one = status();
        one["counters"]["segments_sent"] = taken;
        return one;
      },
      [&] { return now; });
  EXPECT_EQ(taken, 0);
  for (const char* request : {"/gradcube/links", "/gradcube/status", "/gradcube/jobs,mnist"}) {
    EXPECT_EQ(server.answer_to(request).find("error"), std::string::npos) << request;
  }
  EXPECT_EQ(taken, 1);
  now += StatusTelemetry::kFreshFor - std::chrono::nanoseconds(1);
  server.answer_to("/gradcube/counters");
  EXPECT_EQ(taken, 1);
  now += std::chrono::nanoseconds(1);
  EXPECT_EQ(server.answer_to("/gradcube/counters"),
            R"({"/gradcube/counters":{"segments_sent":2,"dropped":{"wrong_checksum":1}}})");
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace gradcube::dataplane
