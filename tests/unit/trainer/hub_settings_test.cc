// What a hub may be made of, and what its daemon hears of it.

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/trainer/hub_fixture.h"
#include "trainer/src/base/sized.h"

namespace gradcube::trainer {
namespace {

class HubSettingsTest : public HubTest {
 protected:
  void expect_refused(const std::string& why) {
    const std::string message = refusal(session_, GRADCUBE_EINVAL);
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }
  void expect_refused_key(const gradcube_hub_key& key, const std::string& why) {
    keys_[1] = key;
    expect_refused(why);
  }

  gradcube_session* session_ = open("job");
};

TEST_F(HubSettingsTest, AreHeardByTheDaemonWithTheKeysInTheOrderOfTheirNames) {
  settings_.optimizer = "momentum:lr=0.1";
  settings_.chunk_bytes = 4096;
  ASSERT_NE(create(session_), nullptr);
  ASSERT_TRUE(eventually([&] { return !daemon_.heard().hub_keys.empty(); }));
  const Heard heard = daemon_.heard();
  ASSERT_EQ(heard.wishes.size(), 1U);
  EXPECT_EQ(heard.wishes[0].number, 1U);
  EXPECT_EQ(heard.wishes[0].lane, 0U);
  EXPECT_EQ(heard.hub_optimizer, "momentum:lr=0.1");
  EXPECT_EQ(heard.hub_chunk_bytes, 4096U);
  ASSERT_EQ(heard.hub_keys.size(), 3U);
  const char* const names[] = {"bias", "norm", "weight"};
  const std::uint64_t elements[] = {10, 7, 100};
  const unsigned types[] = {GRADCUBE_BFLOAT16, GRADCUBE_FLOAT16, GRADCUBE_FLOAT32};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(heard.hub_keys[i].name, names[i]);
    EXPECT_EQ(heard.hub_keys[i].elements, elements[i]);
    EXPECT_EQ(heard.hub_keys[i].dtype, types[i]);
  }
}

TEST_F(HubSettingsTest, HaveAnOptimizerWhereTheCallerHasNone) {
  settings_.optimizer = nullptr;
  settings_.lane = 3;
  ASSERT_NE(create(session_), nullptr);
  ASSERT_TRUE(eventually([&] { return !daemon_.heard().wishes.empty(); }));
  EXPECT_EQ(daemon_.heard().hub_optimizer, "sgd");
  EXPECT_EQ(daemon_.heard().wishes[0].lane, 3U);
}

TEST_F(HubSettingsTest, HaveOneToManyKeys) {
  settings_.keys = nullptr;
  expect_refused("the keys of the hub are NULL");
  settings_.keys = keys_.data();
  settings_.key_count = 0;
  expect_refused("a hub with 0 keys");
  settings_.key_count = 65537;  // refused before any is read
  expect_refused("a hub with 65537 keys");
}

TEST_F(HubSettingsTest, HaveKeysWithNamesThatDiffer) {
  expect_refused_key({nullptr, 1, GRADCUBE_FLOAT32}, "the name of key 1 of the hub is NULL");
  expect_refused_key({"", 1, GRADCUBE_FLOAT32}, "the name of key 1 of the hub has 0 bytes");
  const std::string longest(255, 'x');
  const std::string longer(256, 'x');
  expect_refused_key({longer.c_str(), 1, GRADCUBE_FLOAT32},
                     "the name of key 1 of the hub has 256 bytes");
  expect_refused_key({"weight", 1, GRADCUBE_FLOAT32}, "there are two keys \"weight\"");
  keys_[1] = {longest.c_str(), 1, GRADCUBE_FLOAT32};
  EXPECT_NE(create(session_), nullptr);
}

TEST_F(HubSettingsTest, HaveKeysThatCanBeTrained) {
  for (const int dtype : std::vector<int>{GRADCUBE_FLOAT64, GRADCUBE_INT32, GRADCUBE_INT64,
                                          GRADCUBE_INT8, GRADCUBE_UINT8, GRADCUBE_BYTES}) {
    expect_refused_key({"bias", 1, dtype}, "key \"bias\" is of ");
  }
  for (const int dtype : {-1, 9, 1 << 30}) {
    expect_refused_key({"bias", 1, dtype}, "the dtype of key 1 of the hub");
  }
}

TEST_F(HubSettingsTest, HaveKeysOfSizesThatThereAre) {
  expect_refused_key({"bias", 0, GRADCUBE_FLOAT32}, "0 elements");
  for (const std::size_t elements :
       {(std::size_t{1} << 44) + 1, std::size_t{1} << 62, SIZE_MAX / 4, SIZE_MAX}) {
    expect_refused_key({"bias", elements, GRADCUBE_FLOAT32}, "70368744177664");
  }
  expect_refused_key({"bias", std::size_t{1} << 44, GRADCUBE_FLOAT32},
                     "more than 70368744177664 bytes together");
}

TEST_F(HubSettingsTest, HaveAnOptimizerOfSomeLength) {
  const std::string text((1 << 20) + 1, 'x');
  settings_.optimizer = text.c_str();
  expect_refused("the optimizer's text is too long");
}

TEST_F(HubSettingsTest, HaveNothingInWhatIsReserved) {
  settings_.reserved = 1;
  expect_refused("a reserved field of the hub is not 0");
}

TEST_F(HubSettingsTest, HaveAnAggregatorThatIsTheNumberOfAServer) {
  for (const std::uint64_t aggregator : {std::uint64_t{UINT32_MAX}, UINT64_MAX - 1}) {
    settings_.aggregator = aggregator;
    expect_refused("the aggregator of the hub is " + std::to_string(aggregator));
  }
  settings_.aggregator = 7;
  ASSERT_NE(create(session_), nullptr);
  ASSERT_TRUE(eventually([&] { return !daemon_.heard().hub_keys.empty(); }));
  EXPECT_EQ(daemon_.heard().hub_aggregators, (std::vector<std::uint32_t>{7}));
}

// In one order for all trainers.
TEST_F(HubSettingsTest, HaveSeveralAggregatorsInAnyOrder) {
  const std::vector<std::uint64_t> servers = {8, 3, 7};
  settings_.aggregators = servers.data();
  settings_.aggregator_count = servers.size();
  ASSERT_NE(create(session_), nullptr);
  ASSERT_TRUE(eventually([&] { return !daemon_.heard().hub_keys.empty(); }));
  EXPECT_EQ(daemon_.heard().hub_aggregators, (std::vector<std::uint32_t>{3, 7, 8}));
}

TEST_F(HubSettingsTest, RefuseListsOfAggregatorsThatAreNone) {
  const std::vector<std::uint64_t> servers(100, 7);
  settings_.aggregators = servers.data();
  settings_.aggregator_count = 2;
  expect_refused("the hub has the aggregator 7 twice");
  settings_.aggregator_count = 21;
  expect_refused("the hub has 21 aggregators: expected a list of 1 to 20, and no other");
  settings_.aggregator_count = 0;
  expect_refused("the hub has 0 aggregators: expected a list");
  settings_.aggregator_count = 1;
  settings_.aggregator = 7;
  expect_refused("and no other aggregator beside it");
  settings_.aggregators = nullptr;
  settings_.aggregator = GRADCUBE_HUB_NO_AGGREGATOR;
  expect_refused("the hub has 1 aggregators: expected a list");
}

// Its daemon takes no others, and evicts who pushes one.
TEST_F(HubSettingsTest, HaveLearningRatesOfFloat32WhereTheyHaveAnAggregator) {
  settings_.aggregator = 7;
  gradcube_hub* hub = create(session_);
  ASSERT_NE(hub, nullptr);
  const std::vector<float> gradients(100);
  std::uint64_t request = 0;
  init(session_, hub, 0);
  const double most = std::numeric_limits<float>::max();
  const double next = std::nextafter(most, std::numeric_limits<double>::infinity());
  EXPECT_EQ(gradcube_hub_push(hub, 0, gradients.data(), next, &request), GRADCUBE_EINVAL);
  wait(session_, push(session_, hub, 0, gradients.data(), most));
}

TEST_F(HubSettingsTest, HaveAStalenessWithAnAggregatorAlone) {
  settings_.staleness = 2;
  expect_refused("only a hub with an aggregator can be asynchronous");
  settings_.aggregator = 7;
  for (const std::uint64_t staleness : {std::uint64_t{UINT32_MAX}, UINT64_MAX - 1}) {
    settings_.staleness = staleness;
    expect_refused("the staleness of the hub is " + std::to_string(staleness));
  }
  settings_.staleness = 2;
  ASSERT_NE(create(session_), nullptr);
  ASSERT_TRUE(eventually([&] { return !daemon_.heard().hub_keys.empty(); }));
  EXPECT_EQ(daemon_.heard().hub_staleness, 2U);
}

// What a newer header may have added is read as far as it is known.
TEST_F(HubSettingsTest, BeginWithTheirSize) {
  constexpr std::size_t kFirst = offsetof(gradcube_hub_settings, lane) + sizeof(unsigned);
  for (const std::size_t size :
       {std::size_t{0}, sizeof(std::size_t), kFirst - 1, kLargestStruct + 1, SIZE_MAX}) {
    settings_.size = size;
    expect_refused("of a gradcube_hub_settings");
  }
  settings_.size = kFirst;
  ASSERT_EQ(free(create(session_)), GRADCUBE_OK);
  struct {
    gradcube_hub_settings known;
    char more[64] = {};
  } newer{settings_, {}};
  newer.known.size = sizeof newer;
  gradcube_hub* hub = nullptr;
  EXPECT_EQ(gradcube_hub_create(session_, &newer.known, kLong, &hub), GRADCUBE_OK)
      << gradcube_last_error(session_);
  ASSERT_NE(hub, nullptr);
  hubs_.push_back(hub);
  ASSERT_EQ(free(hub), GRADCUBE_OK);
  newer.more[63] = 1;
  EXPECT_EQ(gradcube_hub_create(session_, &newer.known, kLong, &hub), GRADCUBE_EINVAL);
  EXPECT_EQ(hub, nullptr);
}

TEST_F(HubSettingsTest, ThatAreRefusedAskTheDaemonForNothing) {
  keys_[0].elements = 0;
  refusal(session_, GRADCUBE_EINVAL);
  keys_[0].elements = 1;
  ASSERT_NE(create(session_), nullptr);
  ASSERT_TRUE(eventually([&] { return !daemon_.heard().wishes.empty(); }));
  EXPECT_EQ(daemon_.heard().wishes.size(), 1U);
  EXPECT_EQ(daemon_.heard().wishes[0].number, 1U);
}

TEST_F(HubSettingsTest, AndWhereTheHubGoesAreGiven) {
  gradcube_hub* hub = nullptr;
  EXPECT_EQ(gradcube_hub_create(session_, nullptr, kLong, &hub), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_create(session_, &settings_, kLong, nullptr), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_create(nullptr, &settings_, kLong, &hub), GRADCUBE_EINVAL);
}

}  // namespace
}  // namespace gradcube::trainer
