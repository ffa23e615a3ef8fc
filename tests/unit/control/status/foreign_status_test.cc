#include "control/status/foreign_status.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

#include "control/plan/base/topology.h"
#include "control/status/form.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::control::status {
namespace {

const bcube::AddressSpace kSpace = parse_topology("bcube:3,2", "").space();
constexpr bcube::ServerId kServer = 7;  // [2,1]

Json port(unsigned number) {
  return {{"level", number},
          {"port", number},
          {"rate_bps", nullptr},
          {"down", {{2, 0}}},
          {"short_only", Json::array()},
          {"wrong", nullptr},
          {"rx_packets", 12}};
}

Json good() {
  return Json::parse(R"({
    "version": "1.0", "pid": 12, "uptime_seconds": 1.5, "topology": {}, "algorithm": "bml",
    "segment_bytes": 8896, "window": 8, "instruction_set": "avx2", "huge_pages": false,
    "lcores": [0], "stalls": [3],
    "memory": {"daemon_bytes": 1, "pool_bytes": 2, "packets_reserved_bytes": 3,
               "packets_reservable_bytes": 4, "trainer_bytes": 5, "trainer_quota_bytes": 6,
               "users": [{"uid": 0, "bytes": 9}]},
    "servers": [{"address": [2, 1], "socket": "/run/x.sock", "trainers": 1}],
    "jobs": [{"name": "mnist", "id": 7, "epoch": 0, "state": "running", "why": "",
              "lanes": [{"algorithm": "bml", "priority": -1}], "weight": 1, "reproducible": false,
              "trainers_per_server": 1, "members": [[0, 0], [2, 1]], "window": 8,
              "packets_reserved_bytes": 5,
              "trainers": [{"address": [2, 1], "local": 0, "pid": 3, "uid": 0, "heap_bytes": 0,
                            "submitted": 1, "completed": 1, "messages_waiting": 2,
                            "messages_begun": 1, "messages_done": 8}],
              "collectives": 1, "waiting_for": [], "waiting_ms": null}],
    "hubs": [{"job": "digits", "id": 8, "number": 1, "address": [2, 1], "state": "running",
              "why": "", "members": [[0, 0], [1, 2]], "trainers_per_server": 1, "uid": 0,
              "keys": 4, "weights_bytes": 64, "memory_bytes": 640, "packets_reserved_bytes": 9}],
    "flow_count": 1,
    "flows": [{"job": "mnist", "server": [2, 1], "lane": 0, "thread": 0, "stage": "broadcast",
               "peer": [2, 0], "srtt_us": 0.5, "sent": 4}],
    "counters": {"resent": 1, "dropped": {"bad_crc": 2}}
  })")
      .patch({{{"op", "add"}, {"path", "/servers/0/ports"}, {"value", {port(0), port(1)}}}});
}

std::optional<Json> checked(const Json& status) {
  return checked_status(status.dump(), kSpace, kServer);
}

TEST(ForeignStatus, IsTakenWithWhatIsKnownOfIt) {
  Json status = good();
  const auto taken = checked(status);
  ASSERT_TRUE(taken.has_value());
  status.erase("topology");
  EXPECT_EQ(nlohmann::json(*taken), nlohmann::json(status));
}

TEST(ForeignStatus, MaySayAtWhichAddressAPortIs) {
  Json status = good();
  status["servers"][0]["ports"][0].update({{"at", "198.18.0.7"}, {"udp_port", 47330}});
  const auto taken = checked(status);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ((*taken)["servers"][0]["ports"][0]["at"], "198.18.0.7");
}

// Of a daemon of another version, or on other ports.
TEST(ForeignStatus, IsTakenWithPlainFieldsThatNobodyKnows) {
  Json status = good();
  for (const char* at : {"", "/servers/0", "/jobs/0", "/jobs/0/trainers/0", "/hubs/0"}) {
    Json& object = status[Json::json_pointer(at)];
    object.update({{"new_number", -1.5}, {"new_text", "\n"}, {"new_flag", true}});
    object.update({{"new_list", {1}}, {"new_object", Json::object()}, {"new_null", nullptr}});
  }
  status["memory"]["new_count"] = 7;
  status["servers"][0]["ports"][0].update({{"receive_interrupts", true}, {"steering", "rules"}});
  status["jobs"][0]["trainers"][0]["submitted_by_lane"] = {1};
  const auto taken = checked(status);
  ASSERT_TRUE(taken.has_value());
  for (const char* at : {"", "/servers/0", "/jobs/0", "/jobs/0/trainers/0", "/hubs/0"}) {
    const Json& object = (*taken)[Json::json_pointer(at)];
    EXPECT_EQ(object["new_number"], -1.5) << at;
    EXPECT_EQ(object["new_text"], "\\n") << at;
    EXPECT_EQ(object["new_flag"], true) << at;
    for (const char* key : {"new_list", "new_object", "new_null"}) {
      EXPECT_FALSE(object.contains(key)) << at << " " << key;
    }
  }
  EXPECT_EQ((*taken)["memory"]["new_count"], 7);
  EXPECT_EQ((*taken)["servers"][0]["ports"][0]["steering"], "rules");
  EXPECT_EQ((*taken)["jobs"][0]["trainers"][0]["submitted_by_lane"], Json::array({1}));
}

TEST(ForeignStatus, HasTheControlThreadsCountsOrNone) {
  Json status = good();
  status["control"] = {{"steps", 5}, {"longest_step_ms", 1.5}};
  const auto taken = checked(status);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(nlohmann::json((*taken)["control"]), nlohmann::json(status["control"]));
  for (const Json& wrong : {Json(1), Json::object(), Json{{"steps", -1}, {"longest_step_ms", 1}}}) {
    status["control"] = wrong;
    EXPECT_FALSE(checked(status).has_value()) << wrong;
  }
}

TEST(ForeignStatus, LosesWhatCouldMoveATerminalsCursor) {
  Json status = good();
  status["jobs"][0]["why"] = "\x1b[2J\n";
  status["counters"]["\x1b"] = 1;
  const auto taken = checked(status);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->dump().find('\x1b'), std::string::npos);
  EXPECT_EQ((*taken)["jobs"][0]["why"], "\\x1b[2J\\n");
  EXPECT_TRUE((*taken)["counters"].contains("\\x1b"));
}

TEST(ForeignStatus, IsOfTheServerThatWasAsked) {
  EXPECT_FALSE(checked_status(good().dump(), kSpace, kServer - 1).has_value());
  Json two = good();
  two["servers"].push_back(two["servers"][0]);
  EXPECT_FALSE(checked(two).has_value());
  Json none = good();
  none["servers"].clear();
  EXPECT_FALSE(checked(none).has_value());
  Json one_port = good();
  one_port["servers"][0]["ports"].erase(1);
  EXPECT_FALSE(checked(one_port).has_value());
}

TEST(ForeignStatus, NamesOnlyServersOfTheCluster) {
  for (const Json& wrong : {Json{3, 0}, Json{0, 3}, Json{2}, Json{0, 2, 1}, Json{0, -1}}) {
    Json status = good();
    status["jobs"][0]["members"].push_back(wrong);
    EXPECT_FALSE(checked(status).has_value()) << wrong;
  }
}

// Keys are looked for one by one: so there are few in an object.
TEST(ForeignStatus, HasNoObjectWithVeryManyKeys) {
  for (const char* at : {"", "/counters", "/counters/dropped", "/jobs/0/lanes/0"}) {
    Json status = good();
    Json& object = status[Json::json_pointer(at)];
    for (int i = 0; i < 100; ++i) object["more" + std::to_string(i)] = i;
    EXPECT_TRUE(checked(status).has_value()) << at;
    for (int i = 100; i < 200; ++i) object["more" + std::to_string(i)] = i;
    EXPECT_FALSE(checked(status).has_value()) << at;
  }
}

// Every value in turn is left out, and is of each other kind.
void expect_refusal_of_each(const Json& form, const Json::json_pointer& at, unsigned& tried) {
  static const Json kWrong[] = {Json("text\n"),  Json(-1),      Json(1.5),
                                Json(true),      Json(nullptr), Json::array({Json::array()}),
                                Json{{"a", "b"}}};
  const Json original = good();
  for (const auto& [key, value] : form.items()) {
    const Json::json_pointer here = form.is_array() ? at / std::stoul(key) : at / key;
    if (here.to_string() == "/topology") continue;
    for (const Json& wrong : kWrong) {
      Json status = original;
      status[here] = wrong;
      const auto taken = checked(status);
      ++tried;
      // What is taken is of the kind that it was: what counts has no sign and no fraction.
      if (!taken.has_value()) continue;
      const std::string name = here.back();
      const bool any_number = name == "uptime_seconds" || name == "srtt_us" || name == "priority";
      const bool may_be_null = name == "rate_bps" || name == "wrong" || name == "waiting_ms";
      EXPECT_TRUE(value.type() == wrong.type() || (any_number && wrong.is_number()) ||
                  (may_be_null && (wrong.is_null() || (name == "wrong" && wrong.is_string()))))
          << here << " " << wrong;
    }
    if (form.is_object() && key != "rx_packets" && key != "resent" && key != "bad_crc" &&
        key != "sent") {
      Json status = original;
      status[at].erase(key);
      EXPECT_FALSE(checked(status).has_value()) << here;
    }
    if (value.is_structured()) expect_refusal_of_each(value, here, tried);
  }
}

TEST(ForeignStatus, IsRefusedIfOneFieldIsMissingOrOfAnotherKind) {
  unsigned tried = 0;
  expect_refusal_of_each(good(), Json::json_pointer(), tried);
  EXPECT_GT(tried, 300U);
}

TEST(ForeignStatus, IsRefusedIfItIsNoJsonOrNestsTooDeep) {
  const std::string text = good().dump();
  for (std::size_t size = 0; size < text.size(); size += 7) {
    EXPECT_FALSE(checked_status(text.substr(0, size), kSpace, kServer).has_value());
  }
  for (const char* wrong : {"", "null", "[]", "\"text\"", "{}", "{\"servers\":[]}"}) {
    EXPECT_FALSE(checked_status(wrong, kSpace, kServer).has_value()) << wrong;
  }
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 300'000; ++i) deep += bracket;
    EXPECT_FALSE(checked_status(deep, kSpace, kServer).has_value());
  }
  EXPECT_FALSE(
      checked_status("{\"a\":" + std::string(400'000, '[') + std::string(400'000, ']') + "}",
                     kSpace, kServer)
          .has_value());
}

TEST(ForeignStatus, SurvivesMutations) {
  const std::uint64_t seed = protocol::test_seed(20261123);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::string text = good().dump();
  for (int round = 0; round < 3000; ++round) {
    std::string mutant = text;
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      mutant[random() % mutant.size()] = static_cast<char>(random());
    }
    const auto taken = checked_status(mutant, kSpace, kServer);
    EXPECT_TRUE(!taken.has_value() || (*taken)["servers"].size() == 1);
  }
}

}  // namespace
}  // namespace gradcube::control::status
