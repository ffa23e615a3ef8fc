#include "cli/checks/link_check.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/base/errors.h"
#include "control/plan/base/topology.h"
#include "trainer/shared_layout.h"

namespace gradcube::cli {
namespace {

using control::NeighbourLink;
using nlohmann::json;

constexpr double kRate = 100e6;

LinkFigures right_figures() {
  return {.payload_bps = 97e6, .round_trip_seconds = 100e-6, .sent = 1000, .lost = 0};
}

json a_status() {
  return json::parse(R"({
    "topology": {"spec": "bcube:2,2", "kind": "bcube", "n": 2, "k": 2, "servers": 4},
    "rate_bps": [100000000, 50000000],
    "servers": [
      {"address": [0, 0], "socket": "/run/0", "ports": [
        {"level": 0, "down": [], "wrong": null}, {"level": 1, "down": [[1, 0]], "wrong": null}]},
      {"address": [0, 1], "socket": "/run/1", "ports": [
        {"level": 0, "down": [], "wrong": null},
        {"level": 1, "down": [], "wrong": "levels are crossed"}]}]})");
}

std::string reported(const NeighbourLink& link) {
  const json status = a_status();
  return reported_problem(status, read_running_cluster(status), link);
}

TEST(ReportedProblem, SaysOfALinkThatSmallFramesAlonePass) {
  json status = a_status();
  status["mtu"] = 9000;
  status["servers"][0]["ports"][1]["short_only"] = json::parse("[[1, 0]]");
  const NeighbourLink link{.level = 1, .first = 0, .second = 2};
  EXPECT_EQ(
      reported_problem(status, read_running_cluster(status), link),
      "small frames pass between [0,0] and [1,0], frames of MTU 9000 do not: raise the MTU of "
      "the switches and interfaces on the way, or start the cluster with a smaller one "
      "(--mtu)");
  EXPECT_EQ(reported(link), "down: [0,0] does not hear [1,0]");
}

TEST(RunningCluster, TellsWhatHasEndedAndWhatToDo) {
  json status = a_status();
  const auto ended = [&](const std::vector<control::ServerId>& members) {
    const RunningCluster cluster = read_running_cluster(status);
    return ended_daemons(cluster, control::Placement::of(cluster.topology, members, "members"));
  };
  EXPECT_EQ(ended({0, 1}), "");
  status["servers"][1]["why"] = "it is busy";
  EXPECT_EQ(ended({0, 1}), "") << "which it was not said to have";
  status["servers"][1]["ended"] = true;
  EXPECT_EQ(ended({0}), "") << "it is another one";
  EXPECT_EQ(ended({0, 1}),
            "server [0,1]: it is busy; `gradcube down`, then `gradcube up`, puts the cluster in "
            "order");
  status["switch_daemons"] = json::parse(R"([{"part": 0, "why": "it fell", "ended": true}])");
  EXPECT_EQ(ended({0}),
            "switches: it fell; `gradcube down`, then `gradcube up`, puts the cluster in order");
}

TEST(RunningCluster, TellsOfPortsThatStandAtOneAddress) {
  json status = a_status();
  json& ports = status["servers"][1]["ports"];
  EXPECT_EQ(read_running_cluster(status).shared_address, "");
  for (unsigned number : {0U, 1U}) ports[number]["port"] = number;
  ports[0]["at"] = "10.0.0.2";
  ports[1]["at"] = "10.1.0.2";
  EXPECT_EQ(read_running_cluster(status).shared_address, "");
  ports[1]["at"] = "10.0.0.2";
  EXPECT_EQ(read_running_cluster(status).shared_address,
            "ports 0 and 1 of server [0,1] share the address 10.0.0.2");
}

TEST(LinkCheck, AsksThePortOfATorusThatLeadsToTheNeighbour) {
  const json status = json::parse(R"({
    "topology": {"spec": "torus:3,1", "kind": "torus", "n": 3, "h": 1, "servers": 3},
    "servers": [
      {"address": [0], "socket": "/run/0", "ports": [
        {"level": 0, "port": 0, "down": [], "wrong": null},
        {"level": 0, "port": 1, "down": [[2]], "wrong": null}]}]})");
  const RunningCluster cluster = read_running_cluster(status);
  EXPECT_EQ(reported_problem(status, cluster, {0, 0, 1}), "");
  EXPECT_EQ(reported_problem(status, cluster, {0, 0, 2}), "down: [0] does not hear [2]");
}

std::vector<LinkResult> two_results() {
  return {{.link = {0, 0, 1},
           .configured_bps = kRate,
           .figures = right_figures(),
           .problem = "",
           .left_out = ""},
          {.link = {1, 0, 2},
           .configured_bps = 0,
           .figures = std::nullopt,
           .problem = "down",
           .left_out = ""}};
}

control::Topology topology() { return control::parse_topology("bcube:2,2", "the test"); }

TEST(LinkCheck, HasNothingAgainstALinkThatIsAsConfigured) {
  EXPECT_EQ(problem_of(right_figures(), kRate, {}), "");
}

TEST(LinkCheck, TakesALinkWhoseSegmentsNobodyHasCountedForNotMeasured) {
  LinkFigures figures = right_figures();
  figures.sent = 0;
  EXPECT_EQ(problem_of(figures, kRate, {}),
            "not measured: the daemons have counted no segments of it");
}

TEST(LinkCheck, SaysHowSlowALinkIs) {
  LinkFigures figures = right_figures();
  figures.payload_bps = 61e6;
  EXPECT_EQ(problem_of(figures, kRate, {}),
            "slow: 61 % of the configured rate, expected at least 80 %");
  figures.payload_bps = 79.96e6;
  EXPECT_EQ(problem_of(figures, kRate, {}),
            "slow: 79.9 % of the configured rate, expected at least 80 %");
  figures.payload_bps = 61e6;
  EXPECT_EQ(problem_of(figures, 0, {}), "") << "no rate is configured";
  LinkCheckSettings settings;
  settings.least_rate = 0.6;
  EXPECT_EQ(problem_of(figures, kRate, settings), "");
}

TEST(LinkCheck, SaysHowManySegmentsWereLostBeforeItSaysHowSlowThatIs) {
  LinkFigures figures = right_figures();
  figures.lost = 10;
  EXPECT_EQ(problem_of(figures, kRate, {}), "") << "as many as may be";
  figures.lost = 11;
  figures.payload_bps = 50e6;
  EXPECT_EQ(problem_of(figures, kRate, {}),
            "lossy: 1.1 % of the segments were lost, expected at most 1 %; "
            "slow: 50 % of the configured rate, expected at least 80 %");
  figures = right_figures();
  figures.sent = 100'000;
  figures.lost = 1'001;
  EXPECT_EQ(problem_of(figures, kRate, {}),
            "lossy: 1.01 % of the segments were lost, expected at most 1 %");
}

TEST(LinkCheck, SaysWhatARoundTripTakesIfALimitIsAsked) {
  LinkCheckSettings settings;
  settings.most_round_trip_seconds = 50e-6;
  EXPECT_EQ(problem_of(right_figures(), kRate, settings),
            "late: a round trip takes 100 us, expected at most 50 us");
  settings.most_round_trip_seconds = 100e-6;
  EXPECT_EQ(problem_of(right_figures(), kRate, settings), "");
}

TEST(LinkCheck, TakesTheDaemonsWordForLinksThatAreDownOrWrong) {
  EXPECT_EQ(reported({0, 0, 1}), "");
  EXPECT_EQ(reported({1, 0, 2}), "down: [0,0] does not hear [1,0]");
  EXPECT_EQ(reported({1, 1, 3}), "levels are crossed");
}

TEST(LinkCheck, KnowsTheServersOfThisHostAndTheRatesOfTheLevels) {
  const RunningCluster cluster = read_running_cluster(a_status());
  EXPECT_EQ(cluster.sockets.size(), 2U);
  EXPECT_EQ(cluster.sockets.at(1), "/run/1");
  EXPECT_EQ(cluster.rates.of(1), 50'000'000U);
  EXPECT_EQ(cluster.topology.dimensions()[0].rate_bps, 100'000'000U);
}

TEST(LinkCheck, KnowsHowManyServersShareACore) {
  json status = a_status();
  EXPECT_EQ(read_running_cluster(status).servers_per_core, 2U) << "nothing is said of cores";
  status["lcores"] = {0, 1};
  EXPECT_EQ(read_running_cluster(status).servers_per_core, 1U);
  status["lcores"] = {0, 1, 2};
  EXPECT_EQ(read_running_cluster(status).servers_per_core, 1U);
  status["servers"].push_back(status["servers"][1]);
  status["servers"].back()["address"] = {1, 0};
  status["lcores"] = {0, 1};
  EXPECT_EQ(read_running_cluster(status).servers_per_core, 2U) << "rounded up";
}

TEST(LinkCheck, RefusesAStatusThatNoDaemonHasWritten) {
  EXPECT_THROW(read_running_cluster(json::parse("{}")), control::UsageError);
  json status = a_status();
  status["servers"][0]["address"] = json::array({7, 7});
  EXPECT_THROW(read_running_cluster(status), control::UsageError);
}

TEST(LinkCheck, NamesItsJobsAsATrainerMay) {
  const std::string longest(kLongestLinkCheckJob, 'x');
  EXPECT_TRUE(shared::is_job_name(link_job_name(longest, {6, 65534, 65535})));
}

TEST(LinkReport, ListsEachLinkAndSumsUpEachLevel) {
  const std::string text = links_report(topology(), two_results(), false).text();
  EXPECT_EQ(text,
            "level  between    and    payload  of the rate  round trip  segments  lost\n"
            "    0    [0,0]  [0,1]  97 Mbit/s       97.0 %      100 us     1,000     0  ok\n"
            "    1    [0,0]  [1,0]          -            -           -         -     -  down\n"
            "\n"
            "level 0, 100 Mbit/s: 1 link, payload 97 Mbit/s to 97 Mbit/s, round trip 100 us to "
            "100 us\n"
            "level 1, no rate: 1 link\n"
            "1 of 2 links of bcube:2,2 is not as configured\n");
}

TEST(LinkReport, HasOneNumberForTheShareOfTheRate) {
  std::vector<LinkResult> results = {two_results().front()};
  results[0].figures->payload_bps = 64.46e6;
  results[0].problem = problem_of(*results[0].figures, kRate, {});
  const std::string text = links_report(topology(), results, false).text();
  EXPECT_NE(text.find("  64.4 %  "), std::string::npos) << text;
  EXPECT_NE(text.find("slow: 64.4 % of the configured rate"), std::string::npos) << text;
}

TEST(LinkReport, SaysThatLinksWithoutARateAreNotJudgedByTheirSpeed) {
  std::vector<LinkResult> results = {two_results().front()};
  EXPECT_TRUE(links_report(topology(), results, false)
                  .text()
                  .ends_with("the link of bcube:2,2 is as configured\n"));
  results[0].configured_bps = 0;
  EXPECT_TRUE(links_report(topology(), results, false)
                  .text()
                  .ends_with("is as configured; no rate is configured, so how fast they are was "
                             "not judged\n"));
}

TEST(LinkReport, SaysWhichLinksNoTrainersCanMeasure) {
  std::vector<LinkResult> results = two_results();
  results[1].problem.clear();
  results[1].left_out = "not measured: [1,0] takes no trainers";
  const std::string text = links_report(topology(), results, false).text();
  EXPECT_NE(text.find(" -  not measured: [1,0] takes no trainers\n"), std::string::npos) << text;
  EXPECT_TRUE(
      text.ends_with("the link of bcube:2,2 is as configured; 1 more, of servers that "
                     "take no trainers, was not measured\n"))
      << text;
  EXPECT_EQ(links_report(topology(), results, false).json()["ok"], true);
  results[1].problem = "down: [0,0] does not hear [1,0]";
  EXPECT_NE(links_report(topology(), results, false).text().find(" -  down: [0,0]"),
            std::string::npos);
  EXPECT_EQ(links_report(topology(), results, false).json()["ok"], false);
}

TEST(LinkCheck, LeavesOutTheLinksOfAggregators) {
  json status = a_status();
  EXPECT_EQ(left_out_for(read_running_cluster(status), {0, 0, 1}), "");
  status["aggregators"] = json::parse("[[0,1]]");
  const RunningCluster cluster = read_running_cluster(status);
  EXPECT_EQ(left_out_for(cluster, {0, 0, 1}), "not measured: [0,1] takes no trainers");
  EXPECT_EQ(left_out_for(cluster, {1, 0, 2}), "");
  EXPECT_EQ(placement_of(cluster, {}, "test").ranks(), 3U);
  EXPECT_EQ(placement_of(cluster, {0, 2}, "test").ranks(), 2U);
  EXPECT_THROW(placement_of(cluster, {0, 1}, "test"), control::UsageError);
}

TEST(LinkReport, SaysThatTheCoresWereBusyIfThatMayBeWhyLinksAreSlow) {
  std::vector<LinkResult> results = {two_results().front(), two_results().front()};
  results[0].figures->core_wait = 0.9;
  const auto text = [&] { return links_report(topology(), results, false).text(); };
  EXPECT_EQ(text().find("cores"), std::string::npos) << "no link is slow";
  results[1].problem = "slow";
  EXPECT_EQ(text().find("cores"), std::string::npos) << "not while the slow one was measured";
  results[1].figures->core_wait = 0.78;
  EXPECT_NE(text().find("the cores were busy: meanwhile a daemon's thread waited for one 78 % of"),
            std::string::npos)
      << text();
  EXPECT_EQ(links_report(topology(), results, false).json()["links"][1]["core_wait"], 0.78);
}

TEST(LinkReport, ListsOnlyTheProblemsAmongManyLinks) {
  std::vector<LinkResult> results(kMostLinks + 1, two_results().front());
  results.push_back(two_results().back());
  EXPECT_EQ(links_report(topology(), results, false).text().find("  ok\n"), std::string::npos);
  EXPECT_NE(links_report(topology(), results, false).text().find("  down\n"), std::string::npos);
  EXPECT_NE(links_report(topology(), results, true).text().find("  ok\n"), std::string::npos);
}

TEST(LinkReport, IsOneObjectForPrograms) {
  const json report = links_report(topology(), two_results(), false).json();
  EXPECT_EQ(report["topology"]["servers"], 4);
  EXPECT_EQ(report["ok"], false);
  ASSERT_EQ(report["links"].size(), 2U);
  EXPECT_EQ(report["links"][0]["problem"], nullptr);
  EXPECT_EQ(report["links"][0]["payload_bps"], 97e6);
  EXPECT_EQ(report["links"][0]["sent"], 1000);
  EXPECT_EQ(report["links"][1]["between"], json::parse("[[0,0],[1,0]]"));
  EXPECT_EQ(report["links"][1]["payload_bps"], nullptr);
  EXPECT_EQ(report["links"][1]["configured_bps"], nullptr);
  EXPECT_EQ(report["links"][1]["problem"], "down");
}

}  // namespace
}  // namespace gradcube::cli
