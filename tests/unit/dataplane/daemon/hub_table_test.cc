#include "dataplane/daemon/hub/hub_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"

namespace gradcube::dataplane {
namespace {

using aggregation::DataType;
using control::HubKey;
using testing::HasSubstr;
using testing::StartsWith;

// Behind which nothing can be read.
std::string refusal(const std::string& table) {
  const std::vector<char> exact(table.begin(), table.end());
  return control::message_of<control::UsageError>([&] {
    read_hub_table({exact.data(), exact.size()}, "here");
  });
}

std::string good_table() {
  return hub_table({{"conv", 900, DataType::float32}, {"bias", 3, DataType::bfloat16}},
                   "momentum:lr=0.1");
}

TEST(HubTable, IsReadAsItWasWritten) {
  const HubTableContent content =
      read_hub_table(hub_table({{"conv", 900, DataType::float32},
                                {"bias", 3, DataType::bfloat16},
                                {"attention", 77, DataType::float16}},
                               "momentum:lr=0.125,momentum=0.5;bias:lr=2", 4096),
                     "here");
  EXPECT_EQ(content.chunk_bytes, 4096U);
  EXPECT_EQ(content.optimizers.of_hub.rule, aggregation::OptimizerRule::momentum);
  EXPECT_EQ(content.optimizers.of_hub.learning_rate, 0.125);
  EXPECT_EQ(content.optimizers.of_hub.momentum, 0.5);
  ASSERT_EQ(content.optimizers.of_keys.size(), 3U);
  EXPECT_EQ(content.optimizers.of_keys[0], content.optimizers.of_hub);
  EXPECT_EQ(content.optimizers.of_keys[1].learning_rate, 2);
  EXPECT_EQ(content.keys, (std::vector<HubKey>{{"attention", 77, DataType::float16},
                                               {"bias", 3, DataType::bfloat16},
                                               {"conv", 900, DataType::float32}}));
}

TEST(HubTable, SaysHowStaleTheHubOfItsAggregatorsMayBe) {
  const auto table_of = [](const std::vector<std::uint32_t>& aggregators, std::uint32_t staleness) {
    std::string table = hub_table({{"a", 1, DataType::float32}}, "sgd", 32768, aggregators);
    std::memcpy(table.data() + offsetof(shared::HubTable, staleness), &staleness, sizeof staleness);
    return table;
  };
  EXPECT_EQ(read_hub_table(table_of({8}, shared::kSynchronous), "here").staleness, std::nullopt);
  EXPECT_THAT(refusal(table_of({}, 3)), HasSubstr("a staleness without an aggregator"));
  const HubTableContent content = read_hub_table(table_of({7, 8}, 3), "here");
  EXPECT_EQ(content.staleness, 3U);
  EXPECT_EQ(content.aggregators, (std::vector<bcube::ServerId>{7, 8}));
}

TEST(HubTable, IsRefusedWithMoreAggregatorsThanItHasOrAHubCanHave) {
  std::string table = good_table();
  for (const std::uint32_t count : {20U, 21U, 1000U, UINT32_MAX}) {
    std::memcpy(table.data() + offsetof(shared::HubTable, aggregators), &count, sizeof count);
    EXPECT_THAT(refusal(table), HasSubstr(count > 20 ? "too many aggregators" : "ends too early"));
  }
}

TEST(HubTable, IsRefusedWhereverItEndsTooEarly) {
  const std::string whole = good_table();
  ASSERT_EQ(refusal(whole), "");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_THAT(refusal(whole.substr(0, bytes)), StartsWith("here: ")) << bytes;
  }
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 1)), HasSubstr("ends too early"));
}

TEST(HubTable, IsRefusedWithBytesBehindIt) {
  EXPECT_THAT(refusal(good_table() + '\0'), HasSubstr("more behind its last key"));
  EXPECT_THAT(refusal(good_table() + table_key("more")), HasSubstr("more behind its last key"));
}

// What it says of itself: more keys than there are, or fewer.
TEST(HubTable, IsRefusedWithCountsThatLie) {
  const std::string keys = table_key("a") + table_key("b");
  ASSERT_EQ(refusal(table_begin(2) + keys), "");
  for (const std::uint32_t count : {3U, 1000U, UINT32_MAX}) {
    EXPECT_THAT(refusal(table_begin(count) + keys), HasSubstr("ends too early")) << count;
  }
  EXPECT_THAT(refusal(table_begin(1) + keys), HasSubstr("more behind"));
  EXPECT_THAT(refusal(table_begin(0) + keys), HasSubstr("more behind"));
  EXPECT_THAT(refusal(table_begin(0)), HasSubstr("0 keys"));
}

TEST(HubTable, IsRefusedWithLengthsThatLie) {
  for (const std::uint32_t bytes : {2U, 1000U, UINT32_MAX}) {
    EXPECT_THAT(refusal(table_begin(1) + bytes_of(shared::HubTableKey{1, bytes, 0}) + "a"),
                HasSubstr("ends too early"))
        << bytes;
    EXPECT_THAT(refusal(bytes_of(shared::HubTable{32768, 1, std::max(bytes, 4U), 0,
                                                  shared::kSynchronous, 0, 0}) +
                        "sgd"),
                HasSubstr("ends too early"))
        << bytes;
  }
}

TEST(HubTable, SaysWhetherItsHubAccumulates) {
  shared::HubTable table{32768, 1, 3, 1, shared::kSynchronous, 1, 0};
  const auto bytes = [&] { return bytes_of(table) + "sgd" + bytes_of(5U) + table_key("a"); };
  EXPECT_TRUE(read_hub_table(bytes(), "test").accumulates);
  table.staleness = 2;
  EXPECT_THAT(refusal(bytes()), HasSubstr("asynchronous"));
  table = {32768, 1, 3, 1, shared::kSynchronous, 2, 0};
  EXPECT_THAT(refusal(bytes()), HasSubstr("a field that there is not"));
  table = {32768, 1, 3, 1, shared::kSynchronous, 0, 1};
  EXPECT_THAT(refusal(bytes()), HasSubstr("a field that there is not"));
}

TEST(HubTable, IsRefusedWithTypesThatCannotBeTrained) {
  for (const std::uint32_t type :
       {static_cast<unsigned>(DataType::sum64), 255U, 256U, UINT32_MAX}) {
    EXPECT_THAT(refusal(table_begin(1) + table_key("a", 1, type)), HasSubstr("type")) << type;
  }
  for (const DataType type : {DataType::float64, DataType::bytes}) {
    EXPECT_THAT(refusal(hub_table({{"a", 1, type}})), HasSubstr("float32, float16 or bfloat16"));
  }
}

TEST(HubTable, IsRefusedWithNamesThatAreNone) {
  EXPECT_THAT(refusal(hub_table({{"", 1, DataType::float32}})), HasSubstr("0 bytes"));
  EXPECT_EQ(refusal(hub_table({{std::string(255, 'a'), 1, DataType::float32}})), "");
  EXPECT_THAT(refusal(hub_table({{std::string(256, 'a'), 1, DataType::float32}})),
              HasSubstr("256 bytes"));
  EXPECT_THAT(refusal(hub_table({{"a", 1, DataType::float32}, {"a", 2, DataType::float16}})),
              HasSubstr("two keys"));
}

TEST(HubTable, IsRefusedWithSizesThatNoHubHas) {
  EXPECT_THAT(refusal(hub_table({{"a", 0, DataType::float32}})), HasSubstr("0 elements"));
  for (const std::uint64_t elements :
       {control::kMostHubBytes / 4 + 1, std::uint64_t{1} << 62, UINT64_MAX}) {
    EXPECT_THAT(refusal(hub_table({{"a", elements, DataType::float32}})), StartsWith("here: "))
        << elements;
  }
  EXPECT_THAT(refusal(hub_table({{"a", std::uint64_t{1} << 43, DataType::float32},
                                 {"b", std::uint64_t{1} << 43, DataType::float32},
                                 {"c", 1, DataType::float32}})),
              HasSubstr("together"));
}

TEST(HubTable, IsRefusedWithOptimizersThatThereAreNot) {
  for (const char* optimizer : {"", "magic", "sgd:lr=-1", "sgd:lr=nan", "adam:momentum=1"}) {
    EXPECT_THAT(refusal(hub_table({{"a", 1, DataType::float32}}, optimizer)), StartsWith("here: "))
        << optimizer;
  }
  EXPECT_THAT(refusal(hub_table({{"a", 1, DataType::float32}}, std::string("sgd\0", 4))),
              StartsWith("here: "));
}

}  // namespace
}  // namespace gradcube::dataplane
