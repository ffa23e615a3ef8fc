#include "cli/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

json whole_status() {
  return json::parse(R"({
    "version":"0.1.0","pid":4711,"uptime_seconds":125.5,
    "topology":{"kind":"bcube","n":3,"k":2,"servers":9},"fabric":"embedded","rate_bps":200000000,
    "mtu":9000,"lcores":[0,1],"idle":"adaptive","instruction_set":"avx512","huge_pages":false,
    "impairments":{"loss":0.02,"duplicate":0,"reorder":0.05,"corrupt":0,"seed":7},
    "memory":{"daemon_bytes":100000000,"pool_bytes":64000000,"trainer_bytes":1250000},
    "servers":[{"address":[2,1],"socket":"/run/g/server-2-1.sock","trainers":1,"ports":[
      {"level":0,"rx_packets":12345,"rx_bytes":5000000,"tx_packets":1,"tx_bytes":2},
      {"level":1,"rx_packets":0,"rx_bytes":0,"tx_packets":0,"tx_bytes":0}]}],
    "switches":[{"name":"level 0, [2,*]","level":0,"forwarded":77,"bytes":1000,"dropped_queue":0,
      "dropped_loss":3,"duplicated":0,"reordered":1,"corrupted":0,"marked":0,"queue_peak_bytes":9000}],
    "jobs":[{"name":"mnist","id":1,"epoch":2,"state":"complete",
      "trainers":[{"address":[2,1],"pid":99}],"collectives":12}],
    "flows":[{"job":1,"server":[2,1],"thread":0,"stage":"aggregation","peer":[2,0],"sent":5,
      "resent":0,"probes":0,"timeouts":0,"in_flight":1,"srtt_us":31.25,"credit":8}],
    "counters":{"segments_sent":1000,"resent":4,"dropped":{"bad_crc":2}}})");
}

TEST(StatusText, ShowsServersSwitchesJobsFlowsCountersAndMemory) {
  const std::string text = status_text(whole_status(), false);
  EXPECT_THAT(
      text, AllOf(HasSubstr("bcube:3,2: 9 servers"), HasSubstr("pid 4711"), HasSubstr("2 min 5 s"),
                  HasSubstr("200 Mbit/s, MTU 9000"), HasSubstr("loss 2 %, reorder 5 %, seed 7"),
                  HasSubstr("64 MB"), HasSubstr("1.25 MB")));
  EXPECT_THAT(text, AllOf(HasSubstr("[2,1]"), HasSubstr("12,345"), HasSubstr("server-2-1.sock"),
                          HasSubstr("level 0, [2,*]"), HasSubstr("mnist"), HasSubstr("pid 99"),
                          HasSubstr("31.25"), HasSubstr("dropped: bad_crc")));
}

TEST(StatusText, LeavesManyFlowsOutUnlessAskedFor) {
  json status = whole_status();
  const json flow = status["flows"][0];
  for (int i = 0; i < 100; ++i) status["flows"].push_back(flow);
  EXPECT_THAT(status_text(status, false), AllOf(HasSubstr("flows: 101"), Not(HasSubstr("31.25"))));
  EXPECT_THAT(status_text(status, true), HasSubstr("31.25"));
}

TEST(StatusText, SurvivesEveryMissingKeyAndEveryKeyOfAnotherType) {
  EXPECT_THAT(status_text(json::object(), true), HasSubstr("cluster"));
  EXPECT_NO_THROW(status_text(json(), true));
  const json whole = whole_status();
  for (const auto& [key, value] : whole.items()) {
    for (const json& other :
         {json(), json(1), json(-2.5), json("text"), json::array({1, "x", nullptr}),
          json::object({{"x", 1}}), json(true)}) {
      json status = whole;
      status[key] = other;
      EXPECT_NO_THROW(status_text(status, true)) << key << " = " << other;
      status.erase(key);
      EXPECT_NO_THROW(status_text(status, true)) << "without " << key;
    }
  }
}

TEST(StatusText, ToleratesRowsOfOtherTypes) {
  json status = whole_status();
  for (const char* list : {"servers", "switches", "jobs", "flows"}) {
    status[list] = {json(), json(3), json("x"), json::array(), json::object()};
  }
  EXPECT_NO_THROW(status_text(status, true));
}

TEST(TopologyText, IsWhatTheTopologyFlagTakes) {
  EXPECT_EQ(topology_text({{"kind", "bcube"}, {"n", 3}, {"k", 2}, {"servers", 9}}), "bcube:3,2");
  EXPECT_EQ(topology_text({{"kind", "star"}, {"n", 9}, {"k", 1}, {"servers", 9}}), "star:9");
  EXPECT_EQ(topology_text({{"kind", "torus"}, {"n", 4}, {"h", 2}, {"servers", 16}}), "torus:4,2");
  EXPECT_EQ(topology_text(json::object()), "");
  EXPECT_EQ(topology_text(json(5)), "");
}

}  // namespace
}  // namespace gradcube::cli
