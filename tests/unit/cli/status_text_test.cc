#include "cli/status/status_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const StatusView kAll{.all_flows = true, .rates = false, .before = nullptr};

json whole_status() {
  return json::parse(R"({
    "version":"0.1.0","pid":4711,"uptime_seconds":125.5,
    "topology":{"spec":"bcube:3,2","kind":"bcube","n":3,"k":2,"servers":9},"fabric":"embedded",
    "rate_bps":200000000,"mtu":9000,"lcores":[0,1],"idle":"adaptive","instruction_set":"avx512",
    "huge_pages":false,
    "impairments":{"loss":0.02,"duplicate":0,"reorder":0.05,"corrupt":0,"seed":7},
    "memory":{"daemon_bytes":100000000,"pool_bytes":64000000,"trainer_bytes":1250000,
      "trainer_quota_bytes":8000000000,"users":[{"uid":1000,"bytes":1500000}]},
    "servers":[{"address":[2,1],"socket":"/run/g/server-2-1.sock","trainers":1,"ports":[
      {"level":0,"rx_packets":12345,"rx_bytes":5000000,"tx_packets":1,"tx_bytes":2},
      {"level":1,"rx_packets":0,"rx_bytes":0,"tx_packets":0,"tx_bytes":0}]}],
    "switches":[{"name":"level 0, [2,*]","level":0,"forwarded":77,"bytes":1000,"dropped_queue":0,
      "dropped_loss":3,"duplicated":0,"reordered":1,"corrupted":0,"marked":0,
      "queue_peak_bytes":9000}],
    "jobs":[{"name":"mnist","id":1234567,"epoch":2,"state":"running",
      "trainers":[{"address":[2,1],"pid":99000,"submitted":14,"completed":12},
        {"address":[2,2],"pid":99001,"submitted":12,"completed":12}],"collectives":12,
      "waiting_for":[[2,2]],"waiting_ms":3200}],
    "impaired_links":[{"server":[2,1],"level":1,"port":1,"switch":"1/[*,1]","loss":0.1,
      "duplicate":0,"reorder":0,"corrupt":0}],
    "flows":[{"job":1,"server":[2,1],"thread":0,"stage":"aggregation","peer":[2,0],"sent":5,
      "resent":0,"probes":0,"timeouts":0,"in_flight":1,"srtt_us":31.25,"credit":8}],
    "counters":{"segments_sent":1000,"resent":4,"dropped":{"bad_crc":2}}})");
}

TEST(StatusText, ShowsServersSwitchesJobsFlowsCountersAndMemory) {
  const std::string text = status_text(whole_status(), {});
  EXPECT_THAT(text, AllOf(HasSubstr("bcube:3,2: 9 servers"), HasSubstr("pid 4711"),
                          HasSubstr("2 min 5 s"), HasSubstr("200 Mbit/s, MTU 9000"),
                          HasSubstr("loss 2 %, reorder 5 %, seed 7; 1 link differs"),
                          HasSubstr("64 MB"), HasSubstr("1.25 MB")));
  EXPECT_THAT(text, AllOf(HasSubstr("[2,1]"), HasSubstr("12,345"), HasSubstr("server-2-1.sock"),
                          HasSubstr("level 0, [2,*]"), HasSubstr("mnist"), HasSubstr("99000"),
                          HasSubstr("31.25"), HasSubstr("dropped: bad_crc")));
}

TEST(StatusText, SaysWhichServersTakeNoTrainers) {
  json status = whole_status();
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("aggregators")));
  status["aggregators"] = {{0, 1}, {2, 2}};
  status["algorithm"] = "mesh";
  EXPECT_THAT(status_text(status, {}),
              HasSubstr("aggregators   [0,1] [2,2], which take no trainers; a job on all others "
                        "runs mesh if it asks"));
}

TEST(StatusText, SaysWhoIsAbsentAndWhatJobsRunThere) {
  json status = whole_status();
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("absent")));
  status["topology"]["servers"] = 7;
  status["topology"]["absent"] = {{0, 1}, {2, 2}};
  status["algorithm"] = "mesh";
  EXPECT_THAT(
      status_text(status, {}),
      AllOf(HasSubstr("bcube:3,2: 7 servers, 2 absent"),
            HasSubstr("absent        [0,1] [2,2]; a job on all servers runs mesh if it asks")));
}

TEST(StatusText, ShowsTheRatesOfLevelsAndOfPorts) {
  json status = whole_status();
  status["rate_bps"] = {10'000'000'000, 500'000'000};
  status["servers"][0]["ports"][0]["rate_bps"] = 10'000'000'000;
  EXPECT_THAT(
      status_text(status, {}),
      AllOf(HasSubstr("links         10 Gbit/s at level 0, 500 Mbit/s at level 1, MTU"),
            ContainsRegex("\\[2,1\\] +1 +0 +10 Gbit/s +12,345"), ContainsRegex("  +1 +- +0 +0 B")));
  status["rate_bps"] = nullptr;
  EXPECT_THAT(status_text(status, {}), HasSubstr("as fast as it goes"));
}

TEST(StatusText, ShowsTheLinksThatServersHaveFoundToBeDown) {
  json status = whole_status();
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("found to be down")));
  status["servers"][0]["ports"][1]["down"] = {{0, 1}, {1, 1}};
  EXPECT_THAT(
      status_text(status, {}),
      HasSubstr("links found to be down\nserver  level  no link to\n [2,1]      1  [0,1] [1,1]"));
}

TEST(StatusText, SaysWhatIsWrongWithAPort) {
  json status = whole_status();
  status["servers"][0]["ports"][0]["wrong"] = nullptr;
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("cabled or set wrongly")));
  const std::string wrong = "port 1 of server [2,1] hears " + std::string(200, '-');
  status["servers"][0]["ports"][1]["wrong"] = wrong + "\n";
  EXPECT_THAT(status_text(status, {}),
              HasSubstr("\nports that are cabled or set wrongly\n " + wrong + "\\n\n\n"));
}

TEST(StatusText, ShowsTheWindowOfAJobAndThePacketMemoryThatIsReserved) {
  json status = whole_status();
  status["window"] = 16;
  status["memory"]["packets_reserved_bytes"] = 2'500'000;
  status["memory"]["packets_reservable_bytes"] = 10'000'000;
  json& job = status["jobs"][0];
  job["window"] = 8;
  job["packets_reserved_bytes"] = 1'250'000;
  EXPECT_THAT(status_text(status, {}), HasSubstr("2.5 MB of 10 MB reserved by jobs"));
  EXPECT_THAT(status_text(status, {}), ContainsRegex("mnist .* running +2 +12 +8 of 16 +1.25 MB "));
  job["window"] = 16;
  EXPECT_THAT(status_text(status, {}), ContainsRegex("mnist .* running +2 +12 +16 +1.25 MB "));
}

TEST(StatusText, ShowsWhatUsersMayUseAndUse) {
  json status = whole_status();
  EXPECT_THAT(status_text(status, {}),
              HasSubstr("8 GB of trainers' buffers per user; user 1000 has 1.5 MB\n"));
  status["user_jobs"] = 32;
  status["user_trainers"] = 64;
  json& trainers = status["jobs"][0]["trainers"];
  for (json& trainer : trainers) trainer["uid"] = 1000;
  status["jobs"].push_back(status["jobs"][0]);
  status["jobs"][1]["trainers"].erase(0);
  EXPECT_THAT(status_text(status, {}),
              HasSubstr("8 GB of trainers' buffers, 32 jobs on a server and 64 trainers per user; "
                        "user 1000 has 1.5 MB, jobs 2 of 32, trainers 3 of 64\n"));
  status["fabric"] = "memif";
  EXPECT_THAT(status_text(status, {}), HasSubstr("jobs 2 of 32, trainers 2 of 64\n"));
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("allowed")));
  status["allowed"] = {{"users", {"alice", "1001"}}, {"groups", {"ml"}}};
  EXPECT_THAT(status_text(status, {}), HasSubstr("\nallowed       users alice, 1001; groups ml\n"));
  EXPECT_THAT(
      status_text(status, {}),
      HasSubstr("trainers on a server per user, and no more places than are left for others;"));
}

TEST(StatusText, SaysWhoseTrainersAreWhereThereAreSeveralUsers) {
  json status = whole_status();
  json& trainers = status["jobs"][0]["trainers"];
  trainers[0]["uid"] = 1000;
  trainers[1]["uid"] = 1000;
  EXPECT_THAT(status_text(status, {}), Not(ContainsRegex("99000 +14 +12 +user")));
  trainers[1]["uid"] = 1001;
  EXPECT_THAT(status_text(status, {}), ContainsRegex("99000 +14 +12 +user 1000\n"));
  EXPECT_THAT(status_text(status, {}),
              ContainsRegex("99001 +12 +12 +user 1001: the others have waited"));
}

TEST(StatusText, NamesTheTrainerThatAJobWaitsForAndSinceWhen) {
  const std::string text = status_text(whole_status(), {});
  EXPECT_THAT(text, HasSubstr("has waited 3.2 s for [2,2] (pid 99001)"));
  EXPECT_THAT(text, ContainsRegex("\\[2,1\\] +99000 +14 +12\n"));
  EXPECT_THAT(text, ContainsRegex("\\[2,2\\] +99001 +12 +12 +the others have waited 3.2 s for it"));
}

TEST(StatusText, NamesTheTrainerThatAJobWaitsForWhereNobodyKnowsSinceWhen) {
  json status = whole_status();
  status["jobs"][0]["waiting_ms"] = nullptr;
  status["jobs"][0]["waiting_for"].push_back({0, 1});
  EXPECT_THAT(status_text(status, {}),
              AllOf(HasSubstr("has waited for [2,2] (pid 99001), [0,1]"),
                    HasSubstr("the others have waited for it"), HasSubstr("has not joined\n")));
}

TEST(StatusText, ShowsTheServersThatDoNotAnswer) {
  json status = whole_status();
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("do not answer")));
  status["servers"].push_back({{"address", {2, 1}}, {"pid", 0}, {"why", "it is silent"}});
  status["servers"].push_back({{"address", {2, 2}}, {"pid", 4712}, {"why", "its daemon ended"}});
  EXPECT_THAT(status_text(status, {}),
              AllOf(HasSubstr(": 9 servers (2 without an answer), "),
                    HasSubstr("servers that do not answer\nserver   pid  no answer, because\n"
                              " [2,1]     -  it is silent\n"
                              " [2,2]  4712  its daemon ended\n")));
}

TEST(StatusText, SaysWhyAJobStopsOrWasAborted) {
  json status = whole_status();
  json& job = status["jobs"][0];
  job["state"] = "aborted";
  job["waiting_for"] = json::array();
  job["why"] = "the trainer of job \"mnist\" on server [2,2] (pid 99001) died";
  EXPECT_THAT(status_text(status, {}),
              ContainsRegex("mnist .* aborted .* the trainer of job .* \\(pid 99001\\) died\n"));
}

TEST(StatusText, ShowsWhichServersAJobIsForUnlessItIsAllOfThem) {
  json status = whole_status();
  json& job = status["jobs"][0];
  EXPECT_THAT(status_text(status, {}), ContainsRegex("mnist .* running +2 +12 "));
  job["members"] = {{2, 1}, {2, 2}, {2, 3}};
  const std::string text = status_text(status, {});
  EXPECT_THAT(text, ContainsRegex("mnist .* running +2 of 3 +12 "));
  EXPECT_THAT(text, HasSubstr("jobs on some of the servers\n"));
  EXPECT_THAT(text, ContainsRegex("mnist +\\[2,1\\] \\[2,2\\] \\[2,3\\]"));
  for (unsigned i = 0; i < 6; ++i) job["members"].push_back({0, i});
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("some of the servers")));
}

TEST(StatusText, HasARowForEveryTrainerHoweverManyThereAre) {
  json status = whole_status();
  json& trainers = status["jobs"][0]["trainers"];
  trainers = json::array();
  for (unsigned i = 0; i < 256; ++i) {
    trainers.push_back({{"address", {i}}, {"pid", 100000 + i}, {"submitted", 3}, {"completed", 3}});
  }
  const std::string text = status_text(status, {});
  for (unsigned i = 0; i < 256; ++i) {
    EXPECT_THAT(text, ContainsRegex(fmt::format("\\[{}\\] +{} ", i, 100000 + i)));
  }
}

TEST(StatusText, NamesServersWhoseTrainersHaveNotJoined) {
  json status = whole_status();
  json& job = status["jobs"][0];
  job["state"] = "gathering";
  job["waiting_for"] = json::array();
  for (unsigned i = 0; i < 7; ++i) job["waiting_for"].push_back({1, i});
  const std::string text = status_text(status, {});
  EXPECT_THAT(text, HasSubstr("has waited 3.2 s for [1,0], [1,1], [1,2], [1,3] and 3 more"));
  EXPECT_THAT(text, ContainsRegex("\\[1,6\\] +- +- +- +has not joined in 3.2 s"));
}

TEST(StatusText, ShowsLanesAndWeightOfAJobThatAskedForOthersThanTheDefault) {
  json status = whole_status();
  status["algorithm"] = "bml";
  status["jobs"][0]["weight"] = 1;
  status["jobs"][0]["lanes"] = {{{"algorithm", "bml"}, {"priority", 0}}};
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("priority")));

  status["jobs"][0]["lanes"] = {{{"algorithm", "bml"}, {"priority", -1}},
                                {{"algorithm", "other"}, {"priority", 7}}};
  EXPECT_THAT(status_text(status, {}),
              AllOf(ContainsRegex("lanes\njob +weight +lane +algorithm +priority\n"),
                    ContainsRegex("mnist +1 +0 +bml +-1\n +1 +other +7\n")));

  status["jobs"][0]["lanes"] = {{{"algorithm", "bml"}, {"priority", 0}}};
  for (const char* key : {"weight", "priority", "algorithm"}) {
    json other = status;
    json& job = other["jobs"][0];
    json& owner = std::string_view(key) == "weight" ? job : job["lanes"][0];
    owner[key] = std::string_view(key) == "algorithm" ? json("other") : json(3);
    EXPECT_THAT(status_text(other, {}), ContainsRegex("mnist +[13] +0 +(bml|other) +[03]\n"))
        << key;
  }
}

TEST(StatusText, WritesJobIdsWithoutSeparators) {
  EXPECT_THAT(status_text(whole_status(), {}),
              AllOf(HasSubstr("1234567"), Not(HasSubstr("1,234,567"))));
}

TEST(StatusText, ShowsWhereAnImpairmentDiffers) {
  EXPECT_THAT(status_text(whole_status(), {}),
              ContainsRegex("1/\\[\\*,1\\] +\\[2,1\\] +1  loss 10 %"));
}

TEST(StatusText, ShowsWhichLinksAreDown) {
  json status = whole_status();
  status["impairments"]["up"] = true;
  json& links = status["impaired_links"];
  links[0]["up"] = true;
  EXPECT_THAT(status_text(status, {}), Not(HasSubstr("(1 down)")));
  links[0]["up"] = false;
  EXPECT_EQ(impairments_summary(status), "loss 2 %, reorder 5 %, seed 7; 1 link differs (1 down)");
  EXPECT_THAT(status_text(status, {}), ContainsRegex("\\[2,1\\] +1  down, loss 10 %\n"));
  links[0]["loss"] = 0;
  links.push_back(links[0]);
  links[1]["up"] = true;
  EXPECT_THAT(status_text(status, {}), ContainsRegex("\\[2,1\\] +1  down\n.+\\[2,1\\] +1  none\n"));
  EXPECT_THAT(impairments_summary(status), HasSubstr("; 2 links differ (1 down)"));
  status["impairments"] = {{"loss", 0}, {"up", true}, {"seed", 7}};
  EXPECT_EQ(impairments_summary(status), "on 2 links (1 down), else none");
  links.erase(1);
  EXPECT_EQ(impairments_summary(status), "on 1 link (1 down), else none");
  links = json::array();
  EXPECT_EQ(impairments_summary(status), "none");
}

TEST(StatusText, ShowsThatAllLinksAreDown) {
  json status = {{"impairments", {{"loss", 0}, {"up", false}, {"seed", 7}}}};
  EXPECT_EQ(impairments_summary(status), "down");
  status["impairments"]["loss"] = 0.02;
  EXPECT_EQ(impairments_summary(status), "down, loss 2 %, seed 7");
  status["impairments"]["up"] = true;
  EXPECT_EQ(impairments_summary(status), "loss 2 %, seed 7");
  status["impairments"]["mtu"] = 1400;
  EXPECT_EQ(impairments_summary(status), "loss 2 %, mtu 1400, seed 7");
}

TEST(StatusText, ShowsThatLinksAreDownBecauseADaemonOfSwitchesDoesNotAnswer) {
  json status = {{"impairments", {{"up", false}, {"seed", 7}}},
                 {"switch_daemons", {{{"pid", 1}, {"why", "its daemon ended"}, {"ended", true}}}}};
  const std::string why = "; no answer from 1 of 1 daemons of switches, whose links count as down";
  EXPECT_EQ(impairments_summary(status), "down" + why);
  status["impairments"]["up"] = true;
  status["impaired_links"] = {{{"switch", "0.0"}, {"server", {0, 0}}, {"up", false}}};
  EXPECT_EQ(impairments_summary(status), "on 1 link (1 down), else none" + why);
  status["impairments"]["loss"] = 0.02;
  EXPECT_EQ(impairments_summary(status), "loss 2 %, seed 7; 1 link differs (1 down)" + why);
  status["switch_daemons"] = {{{"pid", 1}, {"connected", 8}}};
  EXPECT_EQ(impairments_summary(status), "loss 2 %, seed 7; 1 link differs (1 down)");
}

TEST(StatusText, CountsFramesThatLinksThatAreDownHaveDropped) {
  json status = whole_status();
  status["switches"][0]["dropped_down"] = 123;
  EXPECT_THAT(status_text(status, {}), ContainsRegex("loss +down +duplicated"));
  EXPECT_THAT(status_text(status, {}), ContainsRegex("level 0, .+ 3 +123 +0 +1 +0\n"));
}

TEST(StatusText, ShowsTheRatesOfPortsBetweenTwoStatuses) {
  json later = whole_status();
  later["uptime_seconds"] = 127.5;
  later["servers"][0]["ports"][0]["rx_packets"] = 12345 + 4000;
  later["servers"][0]["ports"][0]["rx_bytes"] = 5000000 + 50'000'000;
  const StatusView view{.all_flows = false, .rates = true, .before = whole_status()};
  EXPECT_THAT(status_text(later, view),
              ContainsRegex("\\[2,1\\] +0 +16,345 +2,000 +200 Mbit/s +1 +0 +0 bit/s"));
}

TEST(StatusText, ShowsNoRatesAcrossARestartOfTheDaemon) {
  json later = whole_status();
  later["uptime_seconds"] = 127.5;
  later["pid"] = 4712;
  const StatusView view{.all_flows = false, .rates = true, .before = whole_status()};
  EXPECT_THAT(status_text(later, view), ContainsRegex("\\[2,1\\] +0 +12,345 +- +- +1 +- +-\n"));
}

TEST(StatusText, EscapesControlCharactersOfForeignTexts) {
  json status = whole_status();
  status["jobs"][0]["name"] = "a\x1b[2Jb\nc";
  EXPECT_THAT(status_text(status, {}), AllOf(HasSubstr("a\\x1b[2Jb\\nc"), Not(HasSubstr("\x1b"))));
}

TEST(StatusText, LeavesManyFlowsOutUnlessAskedFor) {
  json status = whole_status();
  const json flow = status["flows"][0];
  for (int i = 0; i < 100; ++i) status["flows"].push_back(flow);
  EXPECT_THAT(status_text(status, {}), AllOf(HasSubstr("flows: 101"), Not(HasSubstr("31.25"))));
  EXPECT_THAT(status_text(status, kAll), AllOf(HasSubstr("31.25"), Not(HasSubstr(" more"))));
  status["flow_count"] = 1'101;
  EXPECT_THAT(status_text(status, kAll), HasSubstr("and 1000 more\n"));
}

TEST(StatusText, SurvivesEveryMissingKeyAndEveryKeyOfAnotherType) {
  EXPECT_THAT(status_text(json::object(), kAll), HasSubstr("cluster"));
  EXPECT_NO_THROW(status_text(json(), kAll));
  const json whole = whole_status();
  for (const auto& [key, value] : whole.items()) {
    for (const json& other :
         {json(), json(1), json(-2.5), json("text"), json::array({1, "x", nullptr}),
          json::object({{"x", 1}}), json(true)}) {
      json status = whole;
      status[key] = other;
      EXPECT_NO_THROW(status_text(status, kAll)) << key << " = " << other;
      status.erase(key);
      EXPECT_NO_THROW(status_text(status, kAll)) << "without " << key;
    }
  }
}

TEST(StatusText, ToleratesRowsOfOtherTypes) {
  json status = whole_status();
  for (const char* list : {"servers", "switches", "jobs", "flows", "impaired_links"}) {
    status[list] = {json(), json(3), json("x"), json::array(), json::object()};
  }
  EXPECT_NO_THROW(status_text(status, kAll));
}

TEST(StatusText, NamesTheTwoPortsOfEachLevelOfATorus) {
  json status = whole_status();
  status["topology"] = {{"kind", "torus"}, {"n", 3}, {"h", 1}, {"servers", 3}};
  json& ports = status["servers"][0]["ports"];
  ports = json::array();
  for (const unsigned port : {0U, 1U}) {
    ports.push_back({{"level", 0},
                     {"port", port},
                     {"rx_packets", 41 + port},
                     {"down", json::array({json::array({1 + port})})}});
  }
  const std::string text = status_text(status, kAll);
  EXPECT_THAT(text, HasSubstr("server  port  no link to"));
  EXPECT_THAT(text, testing::ContainsRegex(" 0 +- +41 "));
  EXPECT_THAT(text, testing::ContainsRegex(" 1 +- +42 "));
  EXPECT_THAT(text, testing::ContainsRegex(" 0  \\[1\\]\n"));
  EXPECT_THAT(text, testing::ContainsRegex(" 1  \\[2\\]\n"));
}

}  // namespace
}  // namespace gradcube::cli
