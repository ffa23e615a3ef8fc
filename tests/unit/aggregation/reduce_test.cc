#include <cmath>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "tests/unit/aggregation/arrays.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

constexpr std::size_t kMaxLength = 257;
constexpr std::size_t kMaxSources = 9;

using Contributions = std::vector<std::vector<Bits>>;

std::string name_of(const Kernels& kernels, DataType type, Operation operation) {
  return std::string(instruction_set_name(kernels.instruction_set)) + " " +
         std::string(data_type_name(type)) + " " + std::string(operation_name(operation));
}

Contributions random_contributions(DataType type, std::size_t source_count, std::size_t count,
                                   std::mt19937_64& random) {
  Contributions contributions(source_count, std::vector<Bits>(count));
  for (auto& contribution : contributions) {
    for (Bits& element : contribution) element = random_element(type, random);
  }
  return contributions;
}

std::vector<Bits> expected_of(DataType type, Operation operation,
                              const Contributions& contributions) {
  std::vector<Bits> expected;
  std::vector<Bits> column(contributions.size());
  for (std::size_t i = 0; i < contributions[0].size(); ++i) {
    for (std::size_t s = 0; s < column.size(); ++s) column[s] = contributions[s][i];
    expected.push_back(oracle_reduce(type, operation, column));
  }
  return expected;
}

// What a reduce of the first `count` elements must return.
bool expected_to_fit(DataType type, Operation operation, const Contributions& contributions,
                     std::size_t count) {
  if (operation != Operation::average || is_float(type)) return true;
  std::vector<Bits> column(contributions.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t s = 0; s < column.size(); ++s) column[s] = contributions[s][i];
    if (oracle_overflows(type, column)) return false;
  }
  return true;
}

struct Case {
  const Kernels* kernels;
  DataType type;
  Operation operation;
  std::size_t count;
  std::optional<std::size_t> in_place;  // the source whose memory is the result's
  bool aligned;
};

// Reduces the first `count` elements and compares the result, the guards, and the untouched
// sources.
void check_reduce(const Case& c, const Contributions& contributions,
                  const std::vector<Bits>& expected) {
  std::vector<GuardedArray> arrays;
  std::vector<const void*> sources;
  for (std::size_t s = 0; s < contributions.size(); ++s) {
    const std::size_t misalignment = c.aligned ? 0 : (2 * c.count + 13 * s + 1) % 64;
    arrays.emplace_back(c.type, std::span(contributions[s]).first(c.count), misalignment);
    sources.push_back(arrays.back().data());
  }
  const std::vector<Bits> zeros(c.count);
  GuardedArray separate(c.type, zeros, c.aligned ? 0 : 3 + 2 * (c.count % 30));
  GuardedArray& result = c.in_place ? arrays[*c.in_place] : separate;

  const bool fits = c.kernels->reduce(c.type, c.operation)(result.data(), sources.data(),
                                                           sources.size(), c.count);
  ASSERT_EQ(fits, expected_to_fit(c.type, c.operation, contributions, c.count));
  for (std::size_t i = 0; i < c.count; ++i) {
    const Bits actual = element_at(c.type, result.data(), i);
    ASSERT_TRUE(agrees(c.type, c.operation, expected[i], actual))
        << "element " << i << " of " << c.count << ": " << std::hex << actual << ", not "
        << expected[i];
  }
  ASSERT_TRUE(result.guards_are_intact());
  for (std::size_t s = 0; s < arrays.size(); ++s) {
    ASSERT_TRUE(arrays[s].guards_are_intact());
    for (std::size_t i = 0; i < c.count && c.in_place != s; ++i) {
      ASSERT_EQ(element_at(c.type, arrays[s].data(), i), contributions[s][i]);
    }
  }
}

template <typename Body>
void for_every_kernel(Body body) {
  for (const DataType type : kPlainTypes) {
    for (const Operation operation : kAllOperations) {
      if (!supports(type, operation)) continue;
      for (const Kernels* kernels : available_kernels()) {
        SCOPED_TRACE(name_of(*kernels, type, operation));
        body(*kernels, type, operation);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

class Reduce : public ::testing::Test {
 protected:
  std::uint64_t seed_ = test_seed();
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "GRADCUBE_TEST_SEED=" + std::to_string(seed_)};
};

TEST_F(Reduce, EveryKernelAgreesWithTheOracleAtEveryLengthAndSourceCount) {
  for_every_kernel([&](const Kernels& kernels, DataType type, Operation operation) {
    std::mt19937_64 random(seed_);
    for (std::size_t source_count = 1; source_count <= kMaxSources; ++source_count) {
      const auto contributions = random_contributions(type, source_count, kMaxLength, random);
      const auto expected = expected_of(type, operation, contributions);
      for (std::size_t count = 0; count <= kMaxLength; ++count) {
        SCOPED_TRACE(std::to_string(source_count) + " sources");
        check_reduce({&kernels, type, operation, count, {}, true}, contributions, expected);
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_F(Reduce, EveryKernelWorksAtOddAddresses) {
  for_every_kernel([&](const Kernels& kernels, DataType type, Operation operation) {
    std::mt19937_64 random(seed_ + 1);
    for (const std::size_t source_count : {1, 2, 3, 5}) {
      const auto contributions = random_contributions(type, source_count, kMaxLength, random);
      const auto expected = expected_of(type, operation, contributions);
      for (std::size_t count = 0; count <= kMaxLength; ++count) {
        check_reduce({&kernels, type, operation, count, {}, false}, contributions, expected);
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_F(Reduce, TheResultMayBeTheMemoryOfAnySource) {
  for_every_kernel([&](const Kernels& kernels, DataType type, Operation operation) {
    std::mt19937_64 random(seed_ + 2);
    for (std::size_t source_count = 1; source_count <= kMaxSources; ++source_count) {
      const auto contributions = random_contributions(type, source_count, kMaxLength, random);
      const auto expected = expected_of(type, operation, contributions);
      for (std::size_t source = 0; source < source_count; ++source) {
        for (const std::size_t count : {1, 31, 64, 100, 257}) {
          SCOPED_TRACE("in source " + std::to_string(source));
          check_reduce({&kernels, type, operation, count, source, source % 2 == 0}, contributions,
                       expected);
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_F(Reduce, NothingOutsideTheArraysIsRead) {
  FencedPage pages[3];
  for_every_kernel([&](const Kernels& kernels, DataType type, Operation operation) {
    for (std::size_t count = 0; count <= kMaxLength; ++count) {
      const std::size_t bytes = count * element_bytes(type);
      const void* at_begin[] = {pages[0].begin(), pages[1].begin(), pages[2].begin()};
      const void* at_end[] = {pages[0].end() - bytes, pages[1].end() - bytes,
                              pages[2].end() - bytes};
      for (const std::size_t source_count : {1, 2, 3}) {
        kernels.reduce(type, operation)(pages[2].begin(), at_begin, source_count, count);
        kernels.reduce(type, operation)(pages[2].end() - bytes, at_end, source_count, count);
      }
      if (kernels.divide(type) == nullptr) continue;
      kernels.divide(type)(pages[2].begin(), count, 3);
      kernels.divide(type)(pages[2].end() - bytes, count, 3);
    }
  });
}

// Three sources, so that a special result meets a further element.
TEST_F(Reduce, EveryTripleOfSpecialElementsFollowsTheRules) {
  for_every_kernel([&](const Kernels& kernels, DataType type, Operation operation) {
    Contributions contributions(3);
    const std::vector<Bits> specials = special_elements(type);
    for (const Bits a : specials) {
      for (const Bits b : specials) {
        for (const Bits c : specials) {
          contributions[0].push_back(a);
          contributions[1].push_back(b);
          contributions[2].push_back(c);
        }
      }
    }
    const std::size_t count = contributions[0].size();
    check_reduce({&kernels, type, operation, count, {}, true}, contributions,
                 expected_of(type, operation, contributions));
    contributions.resize(1);
    check_reduce({&kernels, type, operation, count, {}, true}, contributions,
                 expected_of(type, operation, contributions));
    contributions.resize(4, contributions[0]);
    check_reduce({&kernels, type, operation, count, {}, true}, contributions,
                 expected_of(type, operation, contributions));
  });
}

TEST_F(Reduce, SmallFloatsAreRoundedOnceForAllSources) {
  const std::uint16_t two_thousand_and_forty_eight = float32_to_float16(2048.0f);
  const std::uint16_t one = float32_to_float16(1.0f);
  const void* halves[] = {&two_thousand_and_forty_eight, &one, &one};
  const std::uint16_t two_hundred_and_fifty_six = float32_to_bfloat16(256.0f);
  const std::uint16_t bfloat_one = float32_to_bfloat16(1.0f);
  const void* bfloats[] = {&two_hundred_and_fifty_six, &bfloat_one, &bfloat_one};
  for (const Kernels* kernels : available_kernels()) {
    std::uint16_t result = 0;
    kernels->reduce(DataType::float16, Operation::sum)(&result, halves, 3, 1);
    EXPECT_EQ(float16_to_float32(result), 2050.0f);
    kernels->reduce(DataType::bfloat16, Operation::sum)(&result, bfloats, 3, 1);
    EXPECT_EQ(bfloat16_to_float32(result), 258.0f);
  }
}

TEST_F(Reduce, SourcesAreAddedFromLeftToRight) {
  const float values[] = {1e8f, -1e8f, 1.0f, 0.25f};
  const void* sources[] = {&values[0], &values[1], &values[2], &values[3]};
  const void* reversed[] = {&values[3], &values[2], &values[1], &values[0]};
  for (const Kernels* kernels : available_kernels()) {
    float result = 0;
    kernels->reduce(DataType::float32, Operation::sum)(&result, sources, 4, 1);
    EXPECT_EQ(result, 1.25f);
    kernels->reduce(DataType::float32, Operation::sum)(&result, reversed, 4, 1);
    EXPECT_EQ(result, 0.0f);
  }
}

TEST_F(Reduce, SmallIntegersWrapAndCompareByTheirSign) {
  const std::uint8_t values[] = {0x7f, 0x01, 0xff};  // 127, 1, -1 or 255
  const void* sources[] = {&values[0], &values[1], &values[2]};
  const auto result_of = [&](const Kernels& kernels, DataType type, Operation operation) {
    std::uint8_t result = 0;
    EXPECT_TRUE(kernels.reduce(type, operation)(&result, sources, 3, 1));
    return result;
  };
  for (const Kernels* kernels : available_kernels()) {
    EXPECT_EQ(result_of(*kernels, DataType::int8, Operation::sum), 0x7f);
    EXPECT_EQ(result_of(*kernels, DataType::uint8, Operation::sum), 0x7f);
    EXPECT_EQ(result_of(*kernels, DataType::int8, Operation::min), 0xff);
    EXPECT_EQ(result_of(*kernels, DataType::uint8, Operation::min), 0x01);
    EXPECT_EQ(result_of(*kernels, DataType::int8, Operation::max), 0x7f);
    EXPECT_EQ(result_of(*kernels, DataType::uint8, Operation::max), 0xff);
  }
}

// All pairs of values: 65536 elements of two sources.
TEST_F(Reduce, EveryPairOfSmallIntegersFollowsTheRules) {
  std::vector<Bits> first;
  std::vector<Bits> second;
  for (Bits pair = 0; pair < 0x10000; ++pair) {
    first.push_back(pair >> 8);
    second.push_back(pair & 0xff);
  }
  const Contributions contributions = {first, second};
  for_every_kernel([&](const Kernels& kernels, DataType type, Operation operation) {
    if (element_bytes(type) != 1) return;
    check_reduce({&kernels, type, operation, first.size(), {}, true}, contributions,
                 expected_of(type, operation, contributions));
  });
}

TEST_F(Reduce, OfEqualValuesMinAndMaxKeepTheFirst) {
  for (const Kernels* kernels : available_kernels()) {
    for (const Operation operation : {Operation::min, Operation::max}) {
      for (const auto& [first, second] : {std::pair{0.0f, -0.0f}, std::pair{-0.0f, 0.0f}}) {
        const void* sources[] = {&first, &second};
        float result = 1;
        kernels->reduce(DataType::float32, operation)(&result, sources, 2, 1);
        EXPECT_EQ(std::signbit(result), std::signbit(first));
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::aggregation::test
