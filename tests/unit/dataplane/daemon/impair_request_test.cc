// Requests to impair links, on a fabric whose switches do not run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/daemon/switch_requests.h"

namespace gradcube::dataplane {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kImpairSeed = 7;

class ImpairRequest : public testing::Test {
 protected:
  ImpairRequest() { make("bcube:3,2"); }

  // A fabric of these servers, or of all.
  void make(const char* topology, std::vector<bcube::ServerId> servers = {}) {
    fabric_.reset();
    topology_ = control::parse_topology(topology, "test");
    if (servers.empty()) {
      servers.resize(topology_.servers());
      std::iota(servers.begin(), servers.end(), bcube::ServerId{0});
    }
    fabric_ = std::make_unique<EmbeddedFabric>(EmbeddedFabricOptions{
        .space = topology_.space(), .servers = std::move(servers), .clones = clone_pool(1500)});
  }

  json impair(json request) {
    request["command"] = "impair";
    return json(dataplane::impair(*fabric_, topology_, request, kImpairSeed));
  }

  std::string refusal(const json& request) {
    const json before = report();
    try {
      impair(request);
    } catch (const control::UsageError& error) {
      EXPECT_EQ(report(), before) << "a refused request has changed something";
      return error.what();
    }
    return "accepted";
  }

  json report() const { return json(impairments_report(*fabric_, kImpairSeed)); }

  // The loss of the link between the server and its switch of this level.
  double loss(bcube::ServerId server, unsigned level) const {
    for (const EmbeddedFabric::LinkAt& link : fabric_->links()) {
      if (link.server == server && link.level == level) return fabric_->impairments(link).loss;
    }
    return -1;
  }

  // The links that are down: "[2,1] 0/[2,*]".
  std::vector<std::string> down() const {
    std::vector<std::string> down;
    for (const EmbeddedFabric::LinkAt& link : fabric_->links()) {
      if (fabric_->impairments(link).up) continue;
      down.push_back(fabric_->space().text(link.server) + ' ' +
                     fabric_->switches()[link.switch_index].name);
    }
    return down;
  }

  unsigned lossy_links() const {
    unsigned count = 0;
    for (const auto& link : fabric_->links()) count += fabric_->impairments(link).loss > 0;
    return count;
  }

  control::Topology topology_ = control::parse_topology("bcube:3,2", "test");
  std::unique_ptr<EmbeddedFabric> fabric_;
};

TEST_F(ImpairRequest, WithoutAFilterChangesEveryLink) {
  EXPECT_EQ(impair({{"loss", 0.25}})["changed"], 18);
  EXPECT_EQ(lossy_links(), 18u);
  EXPECT_EQ(report()["impairments"]["loss"], 0.25);
  EXPECT_EQ(report()["impairments"]["seed"], kImpairSeed);
  EXPECT_EQ(report()["impaired_links"], json::array());
}

TEST_F(ImpairRequest, FiltersByServer) {
  EXPECT_EQ(impair({{"loss", 0.1}, {"server", "2,1"}})["changed"], 2);
  EXPECT_EQ(lossy_links(), 2u);
  EXPECT_EQ(loss(7, 0), 0.1);
  EXPECT_EQ(loss(7, 1), 0.1);
  EXPECT_EQ(report()["impairments"]["loss"], 0.0);
}

TEST_F(ImpairRequest, FiltersByLevel) {
  EXPECT_EQ(impair({{"loss", 0.1}, {"level", 1}})["changed"], 9);
  for (bcube::ServerId server = 0; server < 9; ++server) {
    EXPECT_EQ(loss(server, 0), 0);
    EXPECT_EQ(loss(server, 1), 0.1);
  }
}

TEST_F(ImpairRequest, FiltersByPort) {
  EXPECT_EQ(impair({{"loss", 0.1}, {"port", 1}})["changed"], 9);
  EXPECT_EQ(impair({{"loss", 0.2}, {"server", "2,1"}, {"port", 0}})["changed"], 1);
  EXPECT_EQ(loss(7, 0), 0.2);
  EXPECT_EQ(loss(7, 1), 0.1);
}

TEST_F(ImpairRequest, FiltersBySwitch) {
  EXPECT_EQ(impair({{"loss", 0.1}, {"switch", "1/[*,2]"}})["changed"], 3);
  EXPECT_EQ(lossy_links(), 3u);
  for (const bcube::ServerId server : {2U, 5U, 8U}) EXPECT_EQ(loss(server, 1), 0.1);
}

TEST_F(ImpairRequest, CombinesFilters) {
  EXPECT_EQ(impair({{"loss", 0.1}, {"server", "[2,1]"}, {"level", 1}})["changed"], 1);
  EXPECT_EQ(loss(7, 1), 0.1);
  EXPECT_EQ(impair({{"loss", 0.2}, {"server", "0,2"}, {"switch", "1/[*,2]"}})["changed"], 1);
  EXPECT_EQ(loss(2, 1), 0.2);
  EXPECT_EQ(lossy_links(), 2u);
}

TEST_F(ImpairRequest, ShowsWhereALinkDiffersFromTheRest) {
  impair({{"loss", 0.01}});
  impair({{"duplicate", 0.5}, {"server", "2,1"}, {"level", 1}});
  EXPECT_EQ(report()["impaired_links"],
            json::parse(R"([{"server":[2,1],"level":1,"port":1,"switch":"1/[*,1]",
      "loss":0.01,"duplicate":0.5,"reorder":0.0,"corrupt":0.0,"up":true}])"));
}

TEST_F(ImpairRequest, BoundsTheLengthOfWhatAServerSends) {
  EXPECT_EQ(impair({{"mtu", 1400}, {"server", "2,1"}, {"level", 1}})["changed"], 1);
  EXPECT_EQ(report()["impaired_links"],
            json::parse(R"([{"server":[2,1],"level":1,"port":1,"switch":"1/[*,1]",
      "loss":0.0,"duplicate":0.0,"reorder":0.0,"corrupt":0.0,"mtu":1400,"up":true}])"));
  EXPECT_EQ(impair({{"mtu", 0}})["changed"], 1);
  EXPECT_EQ(report()["impaired_links"], json::array());
  for (const json& wrong : {json(-1), json(9001), json(1.5), json("1400")}) {
    EXPECT_THAT(refusal({{"mtu", wrong}}), HasSubstr("expected a number of bytes"));
  }
}

TEST_F(ImpairRequest, LeavesWhatIsNotNamedAsItIs) {
  impair({{"duplicate", 0.5}, {"server", "2,1"}, {"level", 1}});
  impair({{"loss", 0.1}});
  EXPECT_EQ(report()["impairments"]["loss"], 0.1);
  EXPECT_EQ(report()["impaired_links"][0]["loss"], 0.1);
  EXPECT_EQ(report()["impaired_links"][0]["duplicate"], 0.5);
}

TEST_F(ImpairRequest, TakesBackWhatOneLinkHas) {
  impair({{"loss", 0.1}, {"duplicate", 0.1}, {"server", "2,1"}});
  impair({{"clear", true}, {"server", "2,1"}, {"level", 0}});
  EXPECT_EQ(report()["impaired_links"].size(), 1u);
  impair({{"clear", true}, {"loss", 0.3}});
  EXPECT_EQ(report()["impaired_links"], json::array());
  EXPECT_EQ(report()["impairments"]["loss"], 0.3);
  EXPECT_EQ(report()["impairments"]["duplicate"], 0.0);
  impair({{"clear", true}});
  EXPECT_EQ(lossy_links(), 0u);
}

TEST_F(ImpairRequest, TakesLinksDownAndUp) {
  EXPECT_EQ(impair({{"up", false}, {"server", "2,1"}, {"level", 0}})["changed"], 1);
  EXPECT_THAT(down(), ElementsAre("[2,1] 0/[2,*]"));
  EXPECT_EQ(impair({{"up", false}, {"switch", "1/[*,2]"}})["changed"], 3);
  EXPECT_THAT(down(),
              ElementsAre("[2,1] 0/[2,*]", "[0,2] 1/[*,2]", "[1,2] 1/[*,2]", "[2,2] 1/[*,2]"));
  EXPECT_EQ(impair({{"up", true}, {"level", 1}})["changed"], 3) << "the others were up";
  EXPECT_THAT(down(), ElementsAre("[2,1] 0/[2,*]"));
  EXPECT_EQ(impair({{"up", true}})["changed"], 1);
  EXPECT_THAT(down(), IsEmpty());
  EXPECT_EQ(impair({{"up", true}})["changed"], 0);
}

TEST_F(ImpairRequest, ShowsWhichLinksAreDown) {
  EXPECT_EQ(report()["impairments"]["up"], true);
  impair({{"up", false}, {"server", "2,1"}, {"level", 0}});
  EXPECT_EQ(report()["impairments"]["up"], true);
  EXPECT_EQ(report()["impaired_links"],
            json::parse(R"([{"server":[2,1],"level":0,"port":0,"switch":"0/[2,*]",
      "loss":0.0,"duplicate":0.0,"reorder":0.0,"corrupt":0.0,"up":false}])"));
  impair({{"up", false}});
  EXPECT_EQ(report()["impairments"]["up"], false);
  EXPECT_EQ(report()["impaired_links"], json::array());
  impair({{"up", true}, {"server", "0,0"}, {"level", 1}});
  EXPECT_EQ(report()["impaired_links"].size(), 1u);
  EXPECT_EQ(report()["impaired_links"][0]["up"], true);
}

TEST_F(ImpairRequest, NamesThePortsAndCablesOfATorus) {
  fabric_.reset();  // pools have names
  const control::Topology torus = control::parse_topology("torus:3,2", "test");
  EmbeddedFabric fabric(
      {.space = torus.space(), .servers = {0, 1, 2, 3, 4, 5, 6, 7, 8}, .clones = clone_pool(1500)});
  const auto ask = [&](const json& request) {
    return json(dataplane::impair(fabric, torus, request, kImpairSeed));
  };
  const auto wrong = [&](const json& request) -> std::string {
    try {
      ask(request);
    } catch (const control::UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(ask({{"loss", 0.1}})["changed"], 36);
  EXPECT_EQ(ask({{"loss", 0.2}, {"level", 1}})["changed"], 18);
  EXPECT_EQ(ask({{"loss", 0.1}, {"switch", "1/[2,1]-[0,1]"}})["changed"], 2);
  EXPECT_EQ(ask({{"loss", 0.1}})["changed"], 16);
  const json answer = ask({{"up", false}, {"server", "0,1"}, {"port", 3}});
  EXPECT_EQ(answer["changed"], 1);
  EXPECT_EQ(answer["impaired_links"][0]["switch"], "1/[2,1]-[0,1]");
  EXPECT_EQ(answer["impaired_links"][0]["port"], 3);
  EXPECT_EQ(wrong({{"loss", 0.1}, {"port", 4}}),
            "impair: port 4: this cluster has the ports 0 to 3");
  EXPECT_THAT(wrong({{"loss", 0.1}, {"port", 3}, {"level", 0}}),
              HasSubstr("there are server [0,0] level 0 port 0 switch 0/[0,0]-[0,1]; "));
  EXPECT_EQ(
      wrong({{"loss", 0.1}, {"server", "0,1"}, {"port", 2}, {"switch", "1/[2,1]-[0,1]"}}),
      "impair: no link is selected: there are server [0,1] level 0 port 1 switch 0/[0,0]-[0,1]; "
      "server [0,1] level 0 port 0 switch 0/[0,1]-[0,2]; server [0,1] level 1 port 2 switch "
      "1/[0,1]-[1,1]; server [0,1] level 1 port 3 switch 1/[2,1]-[0,1]");
}

TEST_F(ImpairRequest, ALinkThatIsDownKeepsItsProbabilities) {
  impair({{"loss", 0.1}, {"up", false}, {"server", "2,1"}, {"level", 0}});
  impair({{"duplicate", 0.2}});
  EXPECT_THAT(down(), ElementsAre("[2,1] 0/[2,*]"));
  impair({{"up", true}});
  EXPECT_THAT(down(), IsEmpty());
  EXPECT_EQ(loss(7, 0), 0.1);
}

TEST_F(ImpairRequest, ClearBringsLinksUpBeforeOthersGoDown) {
  impair({{"up", false}});
  impair({{"clear", false}});
  EXPECT_EQ(down().size(), 18u);
  impair({{"clear", true}, {"server", "2,1"}});
  EXPECT_EQ(down().size(), 16u);
  impair({{"clear", true}});
  EXPECT_THAT(down(), IsEmpty());
  impair({{"loss", 0.1}});
  impair({{"clear", true}, {"up", false}, {"server", "2,1"}});
  EXPECT_EQ(down().size(), 2u);
  EXPECT_EQ(loss(7, 0), 0);
}

TEST_F(ImpairRequest, RefusesFiltersThatFitNothingAndListsWhatExists) {
  EXPECT_THAT(refusal({{"loss", 0.1}, {"server", "3,0"}}),
              HasSubstr("impair: \"3,0\" is not a server"));
  EXPECT_THAT(refusal({{"loss", 0.1}, {"level", 2}}),
              HasSubstr("level 2: this cluster has the levels 0 to 1"));
  EXPECT_THAT(refusal({{"loss", 0.1}, {"switch", "2/[*,0]"}}),
              AllOf(HasSubstr("no link is selected: there are server [0,0] level 0 port 0 switch"),
                    HasSubstr(" and 12 more: `gradcube status` lists")));
  EXPECT_THAT(refusal({{"loss", 0.1}, {"server", "2,1"}, {"switch", "1/[*,2]"}}),
              AllOf(HasSubstr("server [2,1] level 0 port 0 switch 0/[2,*]; "),
                    EndsWith("server [2,1] level 1 port 1 switch 1/[*,1]")));
}

TEST_F(ImpairRequest, RefusesAServerWhoseLinksAreElsewhere) {
  make("bcube:3,2", {3, 4});
  EXPECT_EQ(impair({{"loss", 0.1}, {"server", "1,1"}})["changed"], 2);
  for (const json& request : {json{{"server", "2,1"}}, json{{"server", "2,1"}, {"level", 0}},
                              json{{"server", "2,1"}, {"switch", "1/[*,1]"}}}) {
    EXPECT_THAT(refusal(request), HasSubstr("there are server [1,0] level 0 port 0 switch"));
  }
}

TEST_F(ImpairRequest, RefusesALevelWhoseSwitchesAreElsewhere) {
  fabric_.reset();  // pools have names
  fabric_ = std::make_unique<EmbeddedFabric>(EmbeddedFabricOptions{
      .space = topology_.space(),
      .servers = {0, 1, 2, 3, 4, 5, 6, 7, 8},
      .has_switch_at = [](bcube::ServerId, unsigned port) { return port == 1; },
      .clones = clone_pool(1500)});
  EXPECT_EQ(impair({{"loss", 0.1}, {"level", 1}})["changed"], 9);
  EXPECT_THAT(refusal({{"loss", 0.1}, {"level", 0}}),
              HasSubstr("there are server [0,0] level 1 port 1 switch 1/[*,0]; "));
  EXPECT_THAT(refusal({{"loss", 0.1}, {"level", 0}, {"server", "2,1"}}),
              EndsWith("there is server [2,1] level 1 port 1 switch 1/[*,1]"));
}

TEST_F(ImpairRequest, NamesSomeOfManyLinksAndCountsTheRest) {
  make("bcube:2,3");
  EXPECT_THAT(refusal({{"loss", 0.1}, {"switch", "x"}}),
              AllOf(HasSubstr("0/[0,0,*]"), HasSubstr("and 18 more: `gradcube status`")));
}

TEST_F(ImpairRequest, RefusesEverythingThatIsNotARequest) {
  EXPECT_THAT(refusal({{"losss", 0.1}}), HasSubstr("duplicate, reorder, corrupt, mtu, up, "));
  for (const json& value :
       {json(1.5), json(-0.1), json("0.1"), json(), json::array(), json(true)}) {
    EXPECT_THAT(refusal({{"loss", value}}), HasSubstr("\"loss\"")) << value;
  }
  for (const json& value : {json(-1), json(1.0), json("1"), json(), json(UINT64_MAX)}) {
    EXPECT_THAT(refusal({{"loss", 0.1}, {"level", value}}), HasSubstr("impair: level")) << value;
  }
  EXPECT_THAT(refusal({{"loss", 0.1}, {"server", 7}}), HasSubstr("\"server\" must be a text"));
  EXPECT_THAT(refusal({{"loss", 0.1}, {"switch", json::array()}}), HasSubstr("\"switch\""));
  for (const json& value : {json("yes"), json(1), json(), json::array()}) {
    const std::string told = " is " + value.dump() + "; expected true or false";
    EXPECT_THAT(refusal({{"clear", value}}), HasSubstr("\"clear\"" + told));
    EXPECT_THAT(refusal({{"up", value}}), HasSubstr("\"up\"" + told));
  }
  const std::string message = refusal({{"loss", 0.1}, {"server", std::string(20'000, '\x1b')}});
  EXPECT_LT(message.size(), 1000u);
  EXPECT_THAT(message, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gradcube::dataplane
