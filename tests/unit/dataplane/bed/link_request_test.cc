#include "dataplane/bed/link_request.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/bed/bed_links.h"
#include "tests/unit/control/message.h"

namespace gradcube::dataplane {
namespace {

class LinkRequestTest : public testing::Test {
 protected:
  LinkRequest read(const nlohmann::json& request) const {
    return read_link_request(topology_, names_of(links_), LinkKind::of_kernel, request);
  }

  std::string refusal(const nlohmann::json& request) const {
    return control::message_of<control::UsageError>([&] { read(request); });
  }

  std::vector<std::string> ports(const nlohmann::json& request) const {
    std::vector<std::string> names;
    for (const std::size_t link : read(request).links) names.push_back(links_[link].port);
    return names;
  }

  control::Topology topology_ = control::parse_topology("bcube:3,2", "");
  std::vector<BedLink> links_ = bed_links(topology_);
};

TEST_F(LinkRequestTest, ChoosesTheLinksThatFitAllThatIsNamed) {
  EXPECT_EQ(ports({{"server", "2,1"}}), (std::vector<std::string>{"p2-1.0", "p2-1.1"}));
  EXPECT_EQ(ports({{"server", "2,1"}, {"level", 0}}), std::vector<std::string>{"p2-1.0"});
  EXPECT_EQ(ports({{"server", "2,1"}, {"port", 0}}), std::vector<std::string>{"p2-1.0"});
  EXPECT_EQ(ports({{"switch", "1/[*,2]"}}),
            (std::vector<std::string>{"p0-2.1", "p1-2.1", "p2-2.1"}));
  EXPECT_EQ(ports({{"switch", "1/[*,2]"}, {"server", "1,2"}}), std::vector<std::string>{"p1-2.1"});
  EXPECT_EQ(ports({{"level", 1}}).size(), 9u);
  EXPECT_EQ(ports(nlohmann::json::object()).size(), 18u);
}

TEST_F(LinkRequestTest, SaysWhatBecomesOfThem) {
  const auto becomes = [this](const nlohmann::json& request, bool was_up) {
    return read(request).change.applied_to({.up = was_up}).up;
  };
  EXPECT_FALSE(becomes({{"up", false}}, true));
  EXPECT_TRUE(becomes({{"up", true}}, false));
  EXPECT_TRUE(becomes({{"clear", true}}, false));
  EXPECT_FALSE(becomes({{"clear", true}, {"up", false}}, true));
  for (const bool up : {false, true}) {
    EXPECT_EQ(becomes({{"clear", false}}, up), up);
    EXPECT_EQ(becomes({{"level", 0}}, up), up);
  }
}

TEST_F(LinkRequestTest, RefusesWhatALinkOfTheKernelDoesNot) {
  for (const char* name : {"loss", "duplicate", "reorder", "corrupt", "mtu"}) {
    EXPECT_EQ(refusal({{name, 0.1}}),
              std::string("impair: ") + name +
                  " is for emulated switches, those of the embedded and the memif fabric; links of "
                  "the veth fabric can be taken down and up");
  }
}

TEST_F(LinkRequestTest, RefusesWhatItDoesNotUnderstand) {
  EXPECT_NE(refusal({{"speed", 1}}).find("unknown key \"speed\""), std::string::npos);
  EXPECT_NE(refusal({{"server", "3,0"}}).find("\"3,0\""), std::string::npos);
  EXPECT_NE(refusal({{"server", 3}}).find("must be a text"), std::string::npos);
  EXPECT_NE(refusal({{"level", 2}}).find("the levels 0 to 1"), std::string::npos);
  EXPECT_NE(refusal({{"level", -1}}).find("the levels 0 to 1"), std::string::npos);
  EXPECT_NE(refusal({{"up", "no"}}).find("true or false"), std::string::npos);
  EXPECT_NE(refusal({{"switch", "1/[*,2]"}, {"level", 0}}).find("no link is selected"),
            std::string::npos);
}

TEST_F(LinkRequestTest, ReportsTheLinksThatDiffer) {
  std::vector<control::Impairments> own(links_.size());
  own[15].up = false;
  const auto report_of = [&](const control::Impairments& common) {
    return link_report(topology_.space(), names_of(links_), own, common, 7);
  };
  auto report = report_of({});
  EXPECT_EQ(report["impairments"]["up"], true);
  EXPECT_EQ(report["impairments"]["loss"], 0.0);
  EXPECT_EQ(report["impairments"]["seed"], 7);
  ASSERT_EQ(report["impaired_links"].size(), 1u);
  EXPECT_EQ(report["impaired_links"][0]["server"], nlohmann::ordered_json({2, 1}));
  EXPECT_EQ(report["impaired_links"][0]["level"], 1);
  EXPECT_EQ(report["impaired_links"][0]["switch"], "1/[*,1]");
  EXPECT_EQ(report["impaired_links"][0]["up"], false);
  own.assign(links_.size(), {.up = false});
  report = report_of({.up = false});
  EXPECT_EQ(report["impairments"]["up"], false);
  EXPECT_TRUE(report["impaired_links"].empty());
}

}  // namespace
}  // namespace gradcube::dataplane
