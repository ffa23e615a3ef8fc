#include "dataplane/bed/merged_links.h"

#include <gtest/gtest.h>
#include <string>

namespace gradcube::dataplane {
namespace {

using Json = nlohmann::ordered_json;

Json faults(double loss, bool up = true) {
  return {{"loss", loss}, {"duplicate", 0.0}, {"reorder", 0.0}, {"corrupt", 0.0}, {"up", up}};
}

Json report(double loss, const char* switch_name) {
  Json common = faults(loss);
  common["seed"] = 1;
  return {{"impairments", common},
          {"impaired_links", Json::array()},
          {"switches", {{{"name", switch_name}}}}};
}

class MergedLinksTest : public testing::Test {
 protected:
  Json merged(const std::vector<Json>& reports) const {
    return merged_links(topology_, links_, parts_, 5, reports);
  }

  control::Topology topology_ = control::parse_topology("bcube:2,2", "");
  std::vector<BedLink> links_ = bed_links(topology_);
  control::SwitchParts parts_{topology_.space(), 4};  // level 0, level 1
};

TEST_F(MergedLinksTest, HaveWhatAllDaemonsHaveInCommon) {
  ASSERT_EQ(parts_.count(), 2u);
  const Json all = merged({report(0.1, "0/[0,*]"), report(0.1, "1/[*,0]")});
  EXPECT_EQ(all["impairments"]["loss"], 0.1);
  EXPECT_EQ(all["impairments"]["seed"], 5);
  EXPECT_TRUE(all["impaired_links"].empty());
  ASSERT_EQ(all["switches"].size(), 2u);
  EXPECT_EQ(all["switches"][1]["name"], "1/[*,0]");
}

TEST_F(MergedLinksTest, ListTheLinksOfADaemonThatDiffers) {
  const Json all = merged({report(0, "a"), report(0.2, "b")});
  EXPECT_EQ(all["impairments"]["loss"], 0);
  ASSERT_EQ(all["impaired_links"].size(), 4u);
  Json first = {{"server", {0, 0}}, {"level", 1}, {"port", 1}, {"switch", "1/[*,0]"}};
  first.update(faults(0.2));
  EXPECT_EQ(all["impaired_links"][0], first);
}

TEST_F(MergedLinksTest, ListTheLinksThatADaemonLists) {
  Json second = report(0, "b");
  Json link = {{"server", {1, 0}}, {"level", 1}, {"port", 1}, {"switch", "1/[*,0]"}};
  link.update(faults(0, false));
  second["impaired_links"].push_back(link);
  EXPECT_EQ(merged({report(0, "a"), second})["impaired_links"], Json::array({link}));
}

TEST_F(MergedLinksTest, ListALinkThatDropsLongFrames) {
  Json second = report(0, "b");
  second["impaired_links"].push_back(
      {{"server", {1, 0}}, {"level", 1}, {"port", 1}, {"switch", "1/[*,0]"}, {"mtu", 1400}});
  const Json links = merged({report(0, "a"), second})["impaired_links"];
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0]["mtu"], 1400);
}

TEST(MergedLinks, TellTheTwoPortsOfALevelApart) {
  const control::Topology torus = control::parse_topology("torus:3,1", "");
  const control::SwitchParts parts(torus.space(), 4);  // the cable from [2] to [0] is the second's
  ASSERT_EQ(parts.count(), 2u);
  Json first = report(0, "a");
  Json link = {{"server", Json::array({0})}, {"level", 0}, {"port", 0}, {"switch", "0/[0]-[1]"}};
  link.update(faults(0, false));
  first["impaired_links"].push_back(link);
  const auto links = bed_links(torus);
  Json merged = merged_links(torus, links, parts, 5, {first, report(0, "b")});
  EXPECT_EQ(merged["impaired_links"], Json::array({link}));

  merged = merged_links(torus, links, parts, 5, {report(0, "a"), nullptr});
  ASSERT_EQ(merged["impaired_links"].size(), 2u);
  EXPECT_EQ(merged["impaired_links"][0]["server"], Json::array({0}));
  EXPECT_EQ(merged["impaired_links"][0]["port"], 1);
  EXPECT_EQ(merged["impaired_links"][1]["server"], Json::array({2}));
  EXPECT_EQ(merged["impaired_links"][1]["port"], 0);
}

TEST_F(MergedLinksTest, TakeTheLinksOfADaemonThatIsGoneForDown) {
  const Json all = merged({report(0, "a"), nullptr});
  EXPECT_EQ(all["impairments"]["up"], true);
  ASSERT_EQ(all["impaired_links"].size(), 4u);
  for (const Json& link : all["impaired_links"]) {
    EXPECT_EQ(link["level"], 1);
    EXPECT_EQ(link["up"], false);
  }
  EXPECT_EQ(merged({nullptr, nullptr})["impairments"]["up"], false);
}

}  // namespace
}  // namespace gradcube::dataplane
