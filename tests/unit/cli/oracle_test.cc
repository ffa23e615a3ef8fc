#include "cli/measure/oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/measure/perf_inputs.h"
#include "control/plan/algorithms.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"
#include "tests/unit/cli/naive_oracle.h"

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using aggregation::Operation;
using control::CollectiveKind;

struct Case {
  const char* topology;
  std::size_t count;
  const char* algorithm = "bml";
  unsigned trainers = 1;  // on each server
};

template <typename Wide, typename Stored>
void expect_oracle_agrees(const Case& which, DataType type, Operation operation) {
  SCOPED_TRACE(std::string(which.topology) + " count " + std::to_string(which.count) + " " +
               std::string(data_type_name(type)) + " " + std::string(operation_name(operation)));
  const auto topology = control::parse_topology(which.topology, "test");
  const auto placement = control::Placement::all(topology).with_trainers(which.trainers, "test");
  const auto plan = control::make_plan(which.algorithm, topology, placement, "test");
  const NaiveOracle<Wide, Stored> naive(plan, type, operation, which.count);
  const Oracle oracle(plan, {CollectiveKind::all_reduce, type, operation, which.count});

  std::vector<int> seen(which.count, 0);
  const Contribution contribution = [&](std::uint32_t server, std::size_t first, std::size_t length,
                                        void* out) {
    fill_input(type, operation, kSeed, server, first, length, out);
  };
  const auto check = [&](std::size_t first, std::size_t length, const void* expected) {
    std::vector<Stored> values(length);
    std::memcpy(values.data(), expected, length * sizeof(Stored));
    for (std::size_t i = 0; i < length; ++i) {
      ++seen[first + i];
      unsigned thread = 0;
      while (plan.thread_range(thread, which.count * sizeof(Stored)).end <=
             (first + i) * sizeof(Stored)) {
        ++thread;
      }
      ASSERT_EQ(values[i], naive.expect(thread, first + i)) << "element " << first + i;
    }
  };
  // Two shares, as two trainers would take them.
  oracle.for_each_block(0, 0, which.count / 3, contribution, check);
  oracle.for_each_block(0, which.count / 3, which.count, contribution, check);
  EXPECT_EQ(seen, std::vector<int>(which.count, 1));
}

class OracleOnTopology : public testing::TestWithParam<Case> {};

TEST_P(OracleOnTopology, AgreesWithOneElementAtATimeForEveryTypeAndOperation) {
  for (const Operation operation :
       {Operation::sum, Operation::average, Operation::min, Operation::max}) {
    expect_oracle_agrees<float, std::uint32_t>(GetParam(), DataType::float32, operation);
    expect_oracle_agrees<double, std::uint64_t>(GetParam(), DataType::float64, operation);
    expect_oracle_agrees<float, std::uint16_t>(GetParam(), DataType::float16, operation);
    expect_oracle_agrees<float, std::uint16_t>(GetParam(), DataType::bfloat16, operation);
    expect_oracle_agrees<std::int32_t, std::uint32_t>(GetParam(), DataType::int32, operation);
    expect_oracle_agrees<std::int64_t, std::uint64_t>(GetParam(), DataType::int64, operation);
    if (operation == Operation::average) continue;
    expect_oracle_agrees<std::int8_t, std::uint8_t>(GetParam(), DataType::int8, operation);
    expect_oracle_agrees<std::uint8_t, std::uint8_t>(GetParam(), DataType::uint8, operation);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Topologies, OracleOnTopology,
    testing::Values(
        Case{"bcube:3,2", 0}, Case{"bcube:3,2", 1}, Case{"bcube:3,2", 8}, Case{"bcube:3,2", 1001},
        Case{"bcube:2,1", 100}, Case{"bcube:2,3", 777}, Case{"bcube:4,2", 333},
        Case{"bcube:3,3", 259}, Case{"star:5", 97},
        Case{"bcube:2,2", 2 * Oracle::kBlockElements + 5},
        Case{"bcube:4,2", 333, "halving_doubling"}, Case{"star:12", 301, "blueconnect:2x3x2,ring"},
        Case{"bcube:3,2", 77, "blueconnect"}, Case{"bcube:3,2", 1001, "hips:ring"},
        Case{"star:5", 97, "hips:ring"}, Case{"bcube:3,2", 500, "ring"},
        Case{"bcube:4,2", 333, "hips:ring,mesh"}, Case{"bcube:3,2", 777, "hips:mesh,ring"},
        Case{"bcube:3,2", 777, "hips:root"}, Case{"bcube:3,2", 777, "ps:1,1"},
        Case{"bcube:3,2", 777, "ps:1,1 0,2"}, Case{"bcube:3,2", 777, "hips:2xroot"},
        Case{"bcube:3,2", 777, "two-level"}, Case{"bcube:4x3x2", 777, "recursive_doubling"},
        Case{"star:5", 97, "recursive_doubling", 3}, Case{"bcube:4,2", 777, "hips:root,ring"},
        Case{"bcube:2,3", 400, "hips:ring,root,mesh"}, Case{"bcube:2,2", 301, "bml", 3},
        Case{"star:3", 301, "hips:ring", 2}, Case{"bcube:2,2", 77, "ps", 5}));

TEST(Oracle, ReducesEachThreadsPartAlongThatThreadsOrderOfLevels) {
  const auto topology = control::parse_topology("bcube:3,2", "test");
  const auto plan = control::make_plan("bml", topology, "test");
  constexpr std::size_t kCount = 2000;
  const Oracle oracle(plan,
                      {CollectiveKind::all_reduce, DataType::float32, Operation::sum, kCount});
  std::vector<float> sums(kCount);
  oracle.for_each_block(
      0, 0, kCount,
      [](std::uint32_t server, std::size_t first, std::size_t length, void* out) {
        fill_input(DataType::float32, Operation::sum, kSeed, server, first, length, out);
      },
      [&](std::size_t first, std::size_t length, const void* expected) {
        std::memcpy(sums.data() + first, expected, length * sizeof(float));
      });

  std::size_t differs = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    float value[9];
    for (unsigned s = 0; s < 9; ++s) {
      fill_input(DataType::float32, Operation::sum, kSeed, s, i, 1, &value[s]);
    }
    const auto rows = ((value[0] + value[1]) + value[2]) + ((value[3] + value[4]) + value[5]) +
                      ((value[6] + value[7]) + value[8]);
    const auto columns = ((value[0] + value[3]) + value[6]) + ((value[1] + value[4]) + value[7]) +
                         ((value[2] + value[5]) + value[8]);
    const bool first_thread = i * sizeof(float) < plan.thread_range(0, kCount * sizeof(float)).end;
    EXPECT_EQ(sums[i], first_thread ? rows : columns) << i;
    differs += rows != columns ? 1 : 0;
  }
  // The inputs must tell the two orders apart, or the oracle would tell nothing.
  EXPECT_GT(differs, kCount / 10);
}

// Every element of a rank's buffer that the oracle has an expectation of; the others are NaN.
std::vector<float> expected_at(const control::Plan& plan, const OracleCollective& collective,
                               control::Rank rank) {
  std::vector<float> values(collective.count, std::numeric_limits<float>::quiet_NaN());
  const Contribution contribution = [&](std::uint32_t from, std::size_t first, std::size_t length,
                                        void* out) {
    fill_input(collective.type, collective.operation, kSeed, from, first, length, out);
  };
  const auto check = [&](std::size_t first, std::size_t length, const void* expected) {
    for (std::size_t i = first; i < first + length; ++i) EXPECT_TRUE(std::isnan(values[i])) << i;
    std::memcpy(values.data() + first, expected, length * sizeof(float));
  };
  const Oracle oracle(plan, collective);
  oracle.for_each_block(rank, 0, collective.count / 3, contribution, check);
  oracle.for_each_block(rank, collective.count / 3, collective.count, contribution, check);
  return values;
}

// The kinds on the servers of bcube:3,2 that are [0,0] [0,2] [2,0] [2,2].
class OracleOfKind : public testing::Test {
 protected:
  static constexpr std::size_t kChunk = 77;  // 308 bytes: no whole units
  static constexpr std::size_t kCount = 4 * kChunk;

  OracleCollective collective(CollectiveKind kind, control::Rank root = 0) const {
    return {kind, DataType::float32, Operation::average, kCount, root};
  }
  float input(control::Rank rank, std::size_t index) const {
    float value = 0;
    fill_input(DataType::float32, Operation::average, kSeed, rank, index, 1, &value);
    return value;
  }
  float average(unsigned thread, std::size_t index) const {
    const NaiveOracle<float, std::uint32_t> naive(plan_, DataType::float32, Operation::average,
                                                  kCount);
    return std::bit_cast<float>(naive.expect(thread, index));
  }
  // The average of the threads' shares of the elements [begin, end).
  float average_in(std::size_t begin, std::size_t end, std::size_t index) const {
    const std::size_t second =
        plan_.thread_range(1, (end - begin) * sizeof(float)).begin / sizeof(float);
    return average(index - begin < second ? 0 : 1, index);
  }

  const control::Topology topology_ = control::parse_topology("bcube:3,2", "test");
  const control::Plan plan_ = control::make_plan(
      "bml", topology_,
      control::Placement::of(topology_, std::vector<control::ServerId>{0, 2, 6, 8}, "test"),
      "test");
};

TEST_F(OracleOfKind, GivesEveryRankOfAnAllReduceTheAverageOverTheRanks) {
  for (control::Rank rank = 0; rank < 4; ++rank) {
    const auto values = expected_at(plan_, collective(CollectiveKind::all_reduce), rank);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], average_in(0, kCount, i)) << i;
  }
}

TEST_F(OracleOfKind, GivesEachRankOfAReduceScatterItsChunkWhoseThreadsHaveSharesOfIt) {
  for (control::Rank rank = 0; rank < 4; ++rank) {
    const auto values = expected_at(plan_, collective(CollectiveKind::reduce_scatter), rank);
    const std::size_t begin = rank * kChunk, end = begin + kChunk;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (i < begin || i >= end) {
        ASSERT_TRUE(std::isnan(values[i])) << i;
      } else {
        ASSERT_EQ(values[i], average_in(begin, end, i)) << i;
      }
    }
  }
}

TEST_F(OracleOfKind, GivesEveryRankOfAnAllGatherTheChunkOfEach) {
  for (control::Rank rank = 0; rank < 4; ++rank) {
    const auto values = expected_at(plan_, collective(CollectiveKind::all_gather), rank);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(values[i], input(static_cast<control::Rank>(i / kChunk), i)) << i;
    }
  }
}

TEST_F(OracleOfKind, GivesEveryRankOfABroadcastTheRootsValues) {
  for (control::Rank rank = 0; rank < 4; ++rank) {
    const auto values = expected_at(plan_, collective(CollectiveKind::broadcast, 2), rank);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], input(2, i)) << i;
  }
}

TEST_F(OracleOfKind, GivesTheRootOfAReduceAloneTheAverage) {
  for (control::Rank rank = 0; rank < 4; ++rank) {
    const auto values = expected_at(plan_, collective(CollectiveKind::reduce, 3), rank);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (rank != 3) {
        ASSERT_TRUE(std::isnan(values[i])) << i;
      } else {
        ASSERT_EQ(values[i], average_in(0, kCount, i)) << i;
      }
    }
  }
}

TEST_F(OracleOfKind, ExpectsNothingOfABarrier) {
  const auto values = expected_at(plan_, collective(CollectiveKind::barrier), 1);
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
}

TEST_F(OracleOfKind, RefusesUnequalChunksAndARootThatIsNoRank) {
  OracleCollective uneven = collective(CollectiveKind::reduce_scatter);
  uneven.count = kCount + 1;
  EXPECT_THROW(Oracle(plan_, uneven), std::invalid_argument);
  EXPECT_THROW(Oracle(plan_, collective(CollectiveKind::broadcast, 4)), std::invalid_argument);
}

TEST(Oracle, ExpectsTheSameOfEveryPlanWhereResultsAreReproducible) {
  constexpr std::size_t kCount = 1000;
  for (const DataType type : {DataType::float32, DataType::float64, DataType::bfloat16}) {
    for (const Operation operation : {Operation::sum, Operation::average, Operation::max}) {
      const Contribution contribution = [&](std::uint32_t server, std::size_t first,
                                            std::size_t length, void* out) {
        fill_input(type, operation, kSeed, server, first, length, out);
      };
      const auto expected_by = [&](const char* topology_name, const char* algorithm) {
        const auto topology = control::parse_topology(topology_name, "test");
        const auto plan = control::make_plan(algorithm, topology, "test");
        const Oracle oracle(plan, {.type = type,
                                   .operation = operation,
                                   .count = kCount,
                                   .chunk_of_rank = nullptr,
                                   .reproducible = true});
        std::vector<std::byte> all(kCount * aggregation::element_bytes(type));
        oracle.for_each_block(0, 0, kCount, contribution,
                              [&](std::size_t first, std::size_t length, const void* block) {
                                const std::size_t size = aggregation::element_bytes(type);
                                std::memcpy(all.data() + first * size, block, length * size);
                              });
        return all;
      };
      const auto expected = expected_by("bcube:3,2", "bml");
      EXPECT_EQ(expected_by("bcube:3,2", "ring"), expected);
      EXPECT_EQ(expected_by("star:9", "mesh"), expected);
    }
  }
}

// How far apart the contributions of a block lie: what room the sources of a step have.
std::size_t room_of_sources(const char* topology_name, std::size_t count) {
  const auto topology = control::parse_topology(topology_name, "test");
  const auto plan = control::make_plan("mesh", topology, "test");
  const Oracle oracle(plan, {CollectiveKind::all_reduce, DataType::float64, Operation::sum, count});
  std::uintptr_t lowest = UINTPTR_MAX, highest = 0;
  oracle.for_each_block(
      0, 0, count,
      [&](std::uint32_t server, std::size_t first, std::size_t length, void* out) {
        fill_input(DataType::float64, Operation::sum, kSeed, server, first, length, out);
        lowest = std::min(lowest, reinterpret_cast<std::uintptr_t>(out));
        highest = std::max(highest, reinterpret_cast<std::uintptr_t>(out) + length * 8);
      },
      [](std::size_t, std::size_t, const void*) {});
  return highest - lowest;
}

TEST(Oracle, TakesNoMoreMemoryForStepsOfMoreSourcesOrForLongerBuffers) {
  const std::size_t most = Oracle::kBlockElements * sizeof(double);
  EXPECT_LE(room_of_sources("star:200", 100'000), most);
  EXPECT_LE(room_of_sources("star:3", 100'000), most);
  EXPECT_GE(room_of_sources("star:3", 100'000), most / 2) << "a block is not shorter than need be";
  EXPECT_EQ(room_of_sources("star:200", 1), 200 * sizeof(double));
}

TEST(Oracle, ThrowsWhereAnAverageOfIntegersOverflows) {
  const auto topology = control::parse_topology("bcube:3,2", "test");
  const auto plan = control::make_plan("bml", topology, "test");
  const Oracle oracle(plan, {CollectiveKind::all_reduce, DataType::int32, Operation::average, 100});
  std::int32_t value = 0;
  const auto average = [&] {
    std::int32_t result = 0;
    oracle.for_each_block(
        0, 0, 100,
        [&](std::uint32_t, std::size_t, std::size_t length, void* out) {
          std::fill_n(static_cast<std::int32_t*>(out), length, value);
        },
        [&](std::size_t, std::size_t, const void* expected) {
          std::memcpy(&result, expected, sizeof result);
        });
    return result;
  };
  value = std::numeric_limits<std::int32_t>::max() / 9;
  EXPECT_EQ(average(), value);
  ++value;
  EXPECT_THROW(average(), std::overflow_error);
}

TEST(CountWrong, CountsElementsWhoseBitsDiffer) {
  const std::vector<float> expected = {1, 2, 3, 0.0f};
  std::vector<float> found = expected;
  EXPECT_EQ(count_wrong(DataType::float32, expected.data(), found.data(), 4), 0u);
  found[1] = std::nextafter(2.0f, 3.0f);
  found[3] = -0.0f;
  EXPECT_EQ(count_wrong(DataType::float32, expected.data(), found.data(), 4), 2u);
  EXPECT_EQ(count_wrong(DataType::float32, expected.data(), found.data(), 1), 0u);
}

TEST(CountWrong, TakesEveryNaNForEveryOtherButNotForANumber) {
  const std::uint32_t quiet = 0x7fc00000u, other = 0xffc00001u, infinity = 0x7f800000u;
  EXPECT_EQ(count_wrong(DataType::float32, &quiet, &other, 1), 0u);
  EXPECT_EQ(count_wrong(DataType::float32, &quiet, &infinity, 1), 1u);
  EXPECT_EQ(count_wrong(DataType::int32, &quiet, &other, 1), 1u);
  const std::uint16_t half = 0x7e00u, half_other = 0xfe01u, half_infinity = 0x7c00u;
  EXPECT_EQ(count_wrong(DataType::float16, &half, &half_other, 1), 0u);
  EXPECT_EQ(count_wrong(DataType::float16, &half, &half_infinity, 1), 1u);
  EXPECT_EQ(count_wrong(DataType::bfloat16, &half, &half_other, 1), 1u);

  const std::uint8_t bytes[] = {1, 2, 3};
  const std::uint8_t others[] = {1, 0, 0};
  for (const DataType type : {DataType::int8, DataType::uint8, DataType::bytes}) {
    EXPECT_EQ(count_wrong(type, bytes, others, 3), 2u);
    EXPECT_EQ(count_wrong(type, bytes, others, 1), 0u);
  }
}

}  // namespace
}  // namespace gradcube::cli
