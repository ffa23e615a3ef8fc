// Keys and their chunks.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "control/base/errors.h"
#include "control/checkpoint/hub_key.h"
#include "control/hub/chunks.h"
#include "tests/unit/control/message.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::control::hub {
namespace {

using aggregation::DataType;
using testing::HasSubstr;

std::string keys_refusal(const std::vector<HubKey>& keys) {
  return message_of<UsageError>([&] { ordered_keys(keys, "keys"); });
}

TEST(HubKeys, AreTheSameInWhateverOrderATrainerNamesThem) {
  const std::uint64_t seed = protocol::test_seed(1810);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  std::vector<HubKey> keys;
  for (int i = 0; i < 50; ++i) {
    keys.push_back({"layer" + std::to_string(i), 1 + random() % 10'000, DataType::float32});
  }
  const std::vector<HubKey> ordered = ordered_keys(keys, "keys");
  for (int round = 0; round < 20; ++round) {
    std::shuffle(keys.begin(), keys.end(), random);
    EXPECT_EQ(ordered_keys(keys, "keys"), ordered);
  }
}

TEST(HubKeys, AreRefusedWithTheReason) {
  EXPECT_EQ(keys_refusal({}), "keys: there are 0 keys; expected 1 to 65536");
  EXPECT_THAT(keys_refusal({{std::string("a\0b", 3), 1}}), testing::HasSubstr("has a NUL"));
  EXPECT_EQ(keys_refusal({{"", 1}}), "keys: a key's name \"\" has 0 bytes; expected 1 to 255");
  EXPECT_THAT(keys_refusal({{std::string(256, 'x'), 1}}), HasSubstr("has 256 bytes"));
  EXPECT_EQ(keys_refusal({{"a", 0}}),
            "keys: key \"a\" has 0 elements; expected 1 to 70368744177664");
  EXPECT_EQ(keys_refusal({{"a", 1, DataType::int32}}),
            "keys: key \"a\" is of int32; expected float32, float16 or bfloat16");
  EXPECT_EQ(keys_refusal({{"a", 1}, {"b", 1}, {"a", 2}}),
            "keys: there are two keys \"a\"; expected a name of its own for each");
  EXPECT_THAT(keys_refusal({{"a", kMostHubBytes / 4}, {"b", 1}}),
              HasSubstr("the keys up to \"b\" have more than 70368744177664 bytes together"));
  EXPECT_THAT(keys_refusal({{"a", UINT64_MAX}}), HasSubstr("elements"));
  EXPECT_THAT(keys_refusal(std::vector<HubKey>(kMostKeys + 1)), HasSubstr("65537 keys"));
  EXPECT_EQ(keys_refusal({{"a", kMostHubBytes / 4}}), "");
}

TEST(Chunks, HoldEveryElementOfEveryKeyOnce) {
  const std::uint64_t seed = protocol::test_seed(1810);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    std::vector<HubKey> keys;
    for (std::size_t i = 0; i < 1 + random() % 20; ++i) {
      keys.push_back({std::to_string(i), 1 + random() % 5000,
                      random() % 2 == 0 ? DataType::float32 : DataType::bfloat16});
    }
    const std::uint64_t chunk_bytes = 64 * (4 + random() % 40);
    std::uint32_t key = 0;
    std::uint64_t next = 0;
    for (const Chunk& chunk : cut_into_chunks(keys, chunk_bytes, "chunks")) {
      if (next == keys[key].elements) {
        ++key;
        next = 0;
      }
      ASSERT_EQ(chunk.key, key);
      ASSERT_EQ(chunk.first_element, next);
      ASSERT_GE(chunk.elements, 1u);
      ASSERT_EQ(chunk.bytes, chunk.elements * aggregation::element_bytes(keys[key].type));
      ASSERT_LE(chunk.bytes, chunk_bytes);
      next += chunk.elements;
      // Only the last one of a key is smaller.
      ASSERT_TRUE(chunk.bytes == chunk_bytes || next == keys[key].elements);
    }
    ASSERT_EQ(key, keys.size() - 1);
    ASSERT_EQ(next, keys[key].elements);
  }
}

std::string chunk_refusal(const std::vector<HubKey>& keys, std::uint64_t chunk_bytes) {
  return message_of<UsageError>([&] { cut_into_chunks(keys, chunk_bytes, "--chunk"); });
}

TEST(Chunks, HaveASizeWithinBounds) {
  const std::vector<HubKey> keys = {{"a", 100}};
  EXPECT_EQ(chunk_refusal(keys, 100),
            "--chunk: chunks of 100 bytes; expected a multiple of 64 from 256 to 4194304, for "
            "example 32Ki");
  EXPECT_THAT(chunk_refusal(keys, 192), HasSubstr("chunks of 192 bytes"));
  EXPECT_THAT(chunk_refusal(keys, kMostChunkBytes + 64), HasSubstr("expected a multiple"));
  EXPECT_THAT(chunk_refusal(keys, 0), HasSubstr("chunks of 0 bytes"));
  EXPECT_EQ(chunk_refusal(keys, 256), "");
  EXPECT_EQ(chunk_refusal({{"a", std::uint64_t{1} << 40}}, 256),
            "--chunk: 17179869184 chunks of 256 bytes; expected at most 4194304: cut larger ones");
}

}  // namespace
}  // namespace gradcube::control::hub
