#include "control/settings/link_rates.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "control/base/errors.h"
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
            "links, or one for each level: level0=10gbit,level1=1gbit");
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
            "all links, or one for each level: level0=10gbit,level1=1gbit");
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
