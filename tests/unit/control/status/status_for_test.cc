#include "control/status/status_for.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gradcube::control::status {
namespace {

using Json = nlohmann::ordered_json;

Json whole() {
  return Json::parse(R"({
    "version": "1.0.0", "flow_count": 2, "flows": [{"job": "hers"}, {"job": "his"}],
    "memory": {"daemon_bytes": 9, "users": [{"uid": 1, "bytes": 5}, {"uid": 2, "bytes": 6}]},
    "jobs": [{"name": "hers", "trainers": [{"uid": 1}]}, {"name": "his", "trainers": [{"uid": 2}]},
             {"name": "both", "trainers": [{"uid": 1}, {"uid": 2}]},
             {"name": "none", "trainers": []}],
    "hubs": [{"job": "hers", "uid": 1}, {"job": "his", "uid": 2}]})");
}

std::vector<std::string> names(const Json& list, const char* key) {
  std::vector<std::string> all;
  for (const Json& each : list) all.push_back(each[key]);
  return all;
}

TEST(StatusFor, HasWhatIsTheUsersOwnAndWhatConcernsAll) {
  const Json hers = status_for(whole(), 1);
  EXPECT_EQ(names(hers["jobs"], "name"), (std::vector<std::string>{"hers", "both"}));
  EXPECT_EQ(names(hers["hubs"], "job"), std::vector<std::string>{"hers"});
  EXPECT_EQ(hers["memory"]["users"], Json::parse(R"([{"uid": 1, "bytes": 5}])"));
  EXPECT_EQ(hers["memory"]["daemon_bytes"], 9);
  EXPECT_EQ(hers["flows"], Json::array());
  EXPECT_EQ(hers["flow_count"], 0);
  EXPECT_EQ(hers["version"], "1.0.0");
}

TEST(StatusFor, OfAUserWithoutJobsHasNone) {
  const Json others = status_for(whole(), 3);
  EXPECT_EQ(others["jobs"], Json::array());
  EXPECT_EQ(others["hubs"], Json::array());
  EXPECT_EQ(others["memory"]["users"], Json::array());
}

}  // namespace
}  // namespace gradcube::control::status
