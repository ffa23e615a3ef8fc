#include "control/settings/server_roles.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

const Topology kNineServers = parse_topology("bcube:3,2", "test");

Aggregators of_nine(std::string_view text) {
  return parse_aggregators(kNineServers, text, "--aggregators");
}

TEST(ServerRoles, ReadAndWriteAddresses) {
  EXPECT_EQ(of_nine("2,2 [0,1];2,2 "), (Aggregators{1, 8}));
  EXPECT_EQ(aggregators_text(kNineServers, {1, 8}), "0,1 2,2");
  EXPECT_EQ(of_nine(aggregators_text(kNineServers, {1, 8})), (Aggregators{1, 8}));
  EXPECT_EQ(addresses_json(kNineServers.space(), {1, 8}).dump(), "[[0,1],[2,2]]");
  EXPECT_EQ(of_nine(""), Aggregators());
  EXPECT_EQ(aggregators_text(kNineServers, {}), "");
  EXPECT_NE(message_of<UsageError>([] { of_nine("2,3"); }).find("--aggregators \"2,3\" is not a"),
            std::string::npos);
}

TEST(ServerRoles, LeaveAtLeastOneServerToTrainersAndNameNoneThatIsAbsent) {
  EXPECT_NO_THROW(validate_aggregators(kNineServers, {}));
  EXPECT_NO_THROW(validate_aggregators(kNineServers, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_NE(message_of<UsageError>([] {
              validate_aggregators(kNineServers, {0, 1, 2, 3, 4, 5, 6, 7, 8});
            }).find("aggregators: all 9 servers are named"),
            std::string::npos);
  EXPECT_NE(message_of<UsageError>([] {
              validate_aggregators(kNineServers.without({8}), {8});
            }).find("aggregators: server [2,2] is absent"),
            std::string::npos);
}

TEST(ServerRoles, PlaceJobsThatNameNoServersOnThoseThatTakeTrainers) {
  EXPECT_EQ(trainers_servers(kNineServers, {0, 8}), (std::vector<ServerId>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(place_on_trainers_servers(kNineServers, {}), Placement::all(kNineServers));
  const Placement eight = place_on_trainers_servers(kNineServers, {8});
  EXPECT_EQ(eight.ranks(), 8U);
  EXPECT_FALSE(eight.is_grid());
  EXPECT_NE(default_algorithm(kNineServers, eight), "bml") << "which needs a grid";
  EXPECT_TRUE(place_on_trainers_servers(kNineServers, {6, 7, 8}).is_grid()) << "a row less";
  const Topology star = parse_topology("star:9", "test");
  EXPECT_TRUE(place_on_trainers_servers(star, {8}).is_grid());
  EXPECT_EQ(place_on_trainers_servers(kNineServers.without({7}), {8}).ranks(), 7U);
}

TEST(ServerRoles, RefuseMembersThatTakeNoTrainers) {
  EXPECT_NO_THROW(require_trainers_servers(kNineServers, {8}, {0, 7}, "--members"));
  EXPECT_EQ(message_of<UsageError>([] {
              require_trainers_servers(kNineServers, {8}, {0, 8}, "--members");
            }),
            "--members: server [2,2] is an aggregator, which takes no trainers");
}

}  // namespace
}  // namespace gradcube::control
