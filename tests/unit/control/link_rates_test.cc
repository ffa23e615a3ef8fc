#include "control/settings/link_rates.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "control/base/errors.h"
#include "control/plan/base/topology_links.h"
#include "control/settings/cluster_file.h"
#include "control/settings/cluster_settings.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

const Topology kCube = parse_topology("bcube:3,2", "test");

std::string rates_refusal(const std::string& text, const Topology& topology = kCube) {
  return message_of<UsageError>([&] { parse_link_rates(text, "--rate").validate(topology); });
}

TEST(LinkRates, AreNoneUntilTheyAreSet) {
  const LinkRates none;
  EXPECT_FALSE(none.limited());
  EXPECT_EQ(none.of(0), 0u);
  EXPECT_EQ(none.slowest(), 0u);
  EXPECT_NO_THROW(none.validate(kCube));
  EXPECT_EQ(none.on(kCube), kCube);
}

TEST(LinkRates, AreReadAsOneForAllLinks) {
  const LinkRates rates = parse_link_rates("1gbit", "--rate");
  EXPECT_TRUE(rates.limited());
  for (unsigned level = 0; level < 7; ++level) EXPECT_EQ(rates.of(level), 1'000'000'000u);
  EXPECT_EQ(rates.slowest(), 1'000'000'000u);
  EXPECT_NO_THROW(rates.validate(parse_topology("bcube:4x3x2", "test")));
}

TEST(LinkRates, AreReadByLevelInAnyOrder) {
  const LinkRates rates = parse_link_rates("level1=1gbit,level0=10gbit", "--rate");
  EXPECT_EQ(rates, LinkRates(std::vector<std::uint64_t>{10'000'000'000, 1'000'000'000}));
  EXPECT_EQ(rates.of(0), 10'000'000'000u);
  EXPECT_EQ(rates.of(1), 1'000'000'000u);
  EXPECT_EQ(rates.slowest(), 1'000'000'000u);
  EXPECT_NO_THROW(rates.validate(kCube));
  const Topology rated = rates.on(kCube);
  EXPECT_EQ(rated.dimensions()[0].rate_bps, 10'000'000'000u);
  EXPECT_EQ(rated.dimensions()[1].rate_bps, 1'000'000'000u);
}

TEST(LinkRates, SayWhichLevelHasNone) {
  EXPECT_EQ(rates_refusal("level0=10gbit"),
            "the rate of level 1 is missing: bcube:3,2 has 2 levels; expected one rate for all "
            "links, or one for each level: level0=10gbit,level1=1gbit; and behind it those of "
            "servers with ports of their own: 1gbit,server8=4x10gbit");
  EXPECT_NE(rates_refusal("level1=10gbit").find("the rate of level 0 is missing"),
            std::string::npos);
  EXPECT_EQ(rates_refusal("level0=1gbit,level1=1gbit,level2=1gbit"),
            "there is a rate for level 2, but the highest level of bcube:3,2 is 1");
}

TEST(LinkRates, RefuseALevelWithoutALimitAndSayWhy) {
  for (const char* text : {"level0=unlimited,level1=1gbit", "level0=none,level1=1gbit"}) {
    EXPECT_NE(
        rates_refusal(text).find("level 0 cannot go without a rate beside levels that have one, "
                                 "because flows may pass both"),
        std::string::npos);
  }
}

TEST(LinkRates, RefuseWhatIsNoListOfLevels) {
  EXPECT_EQ(rates_refusal("level0=1gbit,level0=2gbit"),
            "--rate \"level0=1gbit,level0=2gbit\": level 0 is named twice; expected one rate for "
            "all links, or one for each level: level0=10gbit,level1=1gbit; and behind it those of "
            "servers with ports of their own: 1gbit,server8=4x10gbit");
  EXPECT_NE(rates_refusal("level0=1gbit,").find("--rate \"level0=1gbit,\": \"\" names no level"),
            std::string::npos);
  EXPECT_NE(rates_refusal("level0=1gbit,2gbit").find("\"2gbit\" names no level"),
            std::string::npos);
  EXPECT_NE(rates_refusal("level7=1gbit").find("--rate: the level \"7\""), std::string::npos);
  EXPECT_NE(
      rates_refusal("level0=1").find("--rate: the rate of level 0 \"1\": the unit is missing"),
      std::string::npos);
  for (const char* text : {"", "=", "level=1gbit", "levelx=1gbit", "level0=", "0=1gbit",
                           "level0=1gbit level1=1gbit", "level-1=1gbit"}) {
    EXPECT_NE(rates_refusal(text), "") << text;
  }
}

TEST(LinkRates, OfServersWithPortsOfTheirOwnStandBehindThoseOfAllLinks) {
  for (const char* text : {"200mbit,server8=10x200mbit", "1gbit,server0=2gbit,server3=4x10gbit",
                           "level0=2gbit,level1=1gbit,server2=10gbit"}) {
    EXPECT_EQ(rates_text(parse_link_rates(text, "t")), text);
  }
  const LinkRates rates = parse_link_rates("200mbit,server8=10x400mbit,server2=1gbit", "t");
  EXPECT_EQ(rates.own_ports(),
            (std::vector<PortGroup>{{2, 1, 1'000'000'000}, {8, 10, 400'000'000}}));
  EXPECT_EQ(rates.of_port(8, 0), 400'000'000u);
  EXPECT_EQ(rates.of_port(7, 0), 200'000'000u);
  EXPECT_EQ(rates.slowest(), 200'000'000u);
  EXPECT_EQ(own_ports_from_json(own_ports_json(rates.own_ports()), "t"), rates.own_ports());
  EXPECT_THROW(own_ports_from_json(nlohmann::ordered_json::parse(R"([{"server":-1}])"), "t"),
               UsageError);
  const Topology topology = rates.on(parse_topology("star:9", "t"));
  EXPECT_EQ(topology.space().ports(8), 10u);
  EXPECT_EQ(topology.port_bps(8, 0), 400'000'000u);
  EXPECT_EQ(topology.port_bps(0, 0), 200'000'000u);
  EXPECT_EQ(hop_bps(topology, 8, 0, 0), 200'000'000u);
  EXPECT_EQ(hop_bps(topology, 8, 2, 0), 400'000'000u) << "both are faster than most";
}

TEST(LinkRates, OfServersAreRefusedWhereTheyCannotBe) {
  const auto refusal = [](const char* text, const char* topology) -> std::string {
    try {
      parse_link_rates(text, "--rate").validate(parse_topology(topology, "t"));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("1gbit,server8=4x1gbit", "star:9"), "");
  EXPECT_EQ(refusal("1gbit,server8=10gbit", "bcube:3,2"), "");
  EXPECT_EQ(refusal("1gbit,server9=1gbit", "star:9"),
            "ports of servers: there is no server 9 in star:9");
  EXPECT_EQ(
      refusal("1gbit,server8=4x1gbit", "bcube:3,2"),
      "ports of servers: server 8 cannot have 4 ports in bcube:3,2, where a server has one to "
      "each switch or cable; several ports on a switch are for a star");
  EXPECT_NE(refusal("1gbit,server3=4x1gbit", "tree:2x2").find("are for a star"), std::string::npos);
  EXPECT_EQ(refusal("1gbit,server8=4x1gbit", "star:100"),
            "ports of servers: with 4 ports, a server can have 63 neighbours at most, not 99");
  EXPECT_NE(refusal("server8=1gbit", "star:9").find("only servers' own ports have a rate"),
            std::string::npos);
  EXPECT_NE(refusal("1gbit,server8=1gbit,server8=2gbit", "star:9").find("server 8 is named twice"),
            std::string::npos);
  EXPECT_NE(refusal("1gbit,level0=2gbit", "star:9").find("a rate for all links and others"),
            std::string::npos);
  for (const char* text :
       {"1gbit,server8", "1gbit,server8=", "1gbit,server=1gbit", "1gbit,server8=0x1gbit",
        "1gbit,server8=17x1gbit", "1gbit,server8=x1gbit", "1gbit,server8=4x",
        "1gbit,server8=4X1gbit", "1gbit,serverx=1gbit"}) {
    EXPECT_NE(refusal(text, "star:9"), "") << text;
  }
}

TEST(LinkRates, OfServersAreKeptWhicheverOfRateAndTopologyComesFirst) {
  ClusterSettings settings;
  apply_setting(settings, "rate", "1gbit,server8=4x1gbit", "--rate");
  EXPECT_THROW(validate(settings), UsageError) << "bcube:3,2";
  apply_setting(settings, "topology", "star:9", "--topology");
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings.topology.space().ports(8), 4u);
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  apply_setting(settings, "fabric", "memif", "--fabric");
  EXPECT_THROW(validate(settings), UsageError) << "it has one port for each level";
  apply_setting(settings, "rate", "1gbit,server8=2gbit", "--rate");
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings.topology.space().rails(), 1u);
}

TEST(LinkRates, SurviveJson) {
  for (const LinkRates& rates :
       {LinkRates(), LinkRates(5'000'000), LinkRates(std::vector<std::uint64_t>{5'000'000}),
        LinkRates(std::vector<std::uint64_t>{5'000'000, 7'000'000})}) {
    EXPECT_EQ(link_rates_from_json(to_json(rates), "test:"), rates) << to_json(rates);
  }
  EXPECT_EQ(to_json(parse_link_rates("level0=2mbit,level1=1mbit", "t")).dump(),
            "[2000000,1000000]");
  for (const char* text :
       {"-1", "1.5", "\"1gbit\"", "[]", "{}", "true", "[1,-1]", "[[1]]", "[1,2,3,4,5,6,7,8]"}) {
    EXPECT_THROW(link_rates_from_json(nlohmann::ordered_json::parse(text), "test:"), UsageError)
        << text;
  }
}

TEST(LinkRates, AreASettingWhateverComesFirst) {
  ClusterSettings settings;
  apply_setting(settings, "rate", "level0=4mbit,level1=2mbit,level2=3mbit", "--rate");
  apply_setting(settings, "topology", "bcube:4x3x2", "--topology");
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  EXPECT_EQ(settings.rated_topology().dimensions()[2].rate_bps, 3'000'000u);
  apply_setting(settings, "topology", "bcube:3,2", "--topology");
  EXPECT_THROW(validate(settings), UsageError);
}

TEST(LinkRates, AreReadFromAClusterFile) {
  const std::string topology = "[topology]\nspec = \"bcube:3x2\"\n[link]\n";
  const LinkRates rates(std::vector<std::uint64_t>{10'000'000'000, 1'000'000'000});
  for (const char* text : {"rate = \"level0=10gbit,level1=1gbit\"\n",
                           "rate = [\"level0=10gbit\", \"level1=1gbit\"]\n"}) {
    EXPECT_EQ(parse_cluster_file(topology + text, "c.toml").rates, rates);
  }
  EXPECT_EQ(message_of<UsageError>([&] {
              parse_cluster_file(topology + "rate = \"level1=1gbit\"\n", "c.toml");
            }).find("c.toml: the rate of level 0 is missing: bcube:3x2 has 2 levels"),
            0u);
}

}  // namespace
}  // namespace gradcube::control
