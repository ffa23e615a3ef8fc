// Collectives of every kind: what goes in, what comes out, and what is refused.
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {
namespace {

constexpr unsigned kRank = FakeDaemon::kRank;
constexpr unsigned kSize = FakeDaemon::kSize;
constexpr std::size_t kChunk = 10;

class Kinds : public SessionTest {
 protected:
  static gradcube_collective of(gradcube_kind kind, void* buffer, std::size_t count, int dtype) {
    gradcube_collective collective = GRADCUBE_COLLECTIVE_INIT;
    collective.kind = kind;
    collective.buffer = buffer;
    collective.count = count;
    collective.dtype = dtype;
    return collective;
  }

  static int run(gradcube_session* session, const gradcube_collective& collective) {
    std::uint64_t request = 0;
    const int code = gradcube_submit(session, &collective, &request);
    return code != GRADCUBE_OK ? code : gradcube_wait(session, request, kLong);
  }

  // What a collective leaves in memory from gradcube_alloc, and what in memory that is copied.
  template <typename T>
  void expect_results(gradcube_collective collective, const std::vector<T>& input,
                      const std::vector<T>& shared, const std::vector<T>& foreign) {
    gradcube_session* session = open("job");
    T* memory = elements<T>(session, input.size(), T{});
    std::copy(input.begin(), input.end(), memory);
    collective.buffer = memory;
    ASSERT_EQ(run(session, collective), GRADCUBE_OK) << gradcube_last_error(session);
    EXPECT_EQ(std::vector<T>(memory, memory + input.size()), shared);
    std::vector<T> copied = input;
    collective.buffer = copied.data();
    ASSERT_EQ(run(session, collective), GRADCUBE_OK) << gradcube_last_error(session);
    EXPECT_EQ(copied, foreign);
  }

  static std::vector<std::uint8_t> counted(std::size_t count) {
    std::vector<std::uint8_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), std::uint8_t{1});
    return numbers;
  }
};

TEST_F(Kinds, AReduceScatterChangesNothingOfACopiedBufferButTheOwnChunk) {
  const std::vector<std::uint8_t> input(kSize * kChunk, 3);
  std::vector<std::uint8_t> shared(input.size(), kUndefined);
  std::vector<std::uint8_t> foreign = input;
  std::fill_n(shared.begin() + kRank * kChunk, kChunk, std::uint8_t{27});
  std::fill_n(foreign.begin() + kRank * kChunk, kChunk, std::uint8_t{27});
  expect_results(of(GRADCUBE_REDUCE_SCATTER, nullptr, kChunk, GRADCUBE_UINT8), input, shared,
                 foreign);
}

TEST_F(Kinds, AnAllGatherGivesTheOwnChunkAndTakesAll) {
  const std::vector<std::uint8_t> input = counted(kSize * kChunk);
  std::vector<std::uint8_t> gathered;
  for (unsigned i = 0; i < kSize; ++i) {
    gathered.insert(gathered.end(), input.begin() + kRank * kChunk,
                    input.begin() + (kRank + 1) * kChunk);
  }
  expect_results(of(GRADCUBE_ALL_GATHER, nullptr, kChunk, GRADCUBE_BYTES), input, gathered,
                 gathered);
}

TEST_F(Kinds, ABroadcastReachesAllButTheRootWhichKeepsItsBuffer) {
  const std::vector<std::uint8_t> input = counted(40);
  const std::vector<std::uint8_t> received(40, kBroadcast);
  gradcube_collective broadcast = of(GRADCUBE_BROADCAST, nullptr, 40, GRADCUBE_BYTES);
  broadcast.root = 2;
  expect_results(broadcast, input, received, received);
  broadcast.root = kRank;
  expect_results(broadcast, input, input, input);
}

TEST_F(Kinds, AReduceEndsAtTheRootAndLeavesOtherCopiedBuffersAlone) {
  const std::vector<std::int8_t> input(40, -2);
  const std::vector<std::int8_t> sum(40, -18);
  const std::vector<std::int8_t> undefined(40, static_cast<std::int8_t>(kUndefined));
  gradcube_collective reduce = of(GRADCUBE_REDUCE, nullptr, 40, GRADCUBE_INT8);
  reduce.root = 0;
  expect_results(reduce, input, undefined, input);
  reduce.root = kRank;
  expect_results(reduce, input, sum, sum);
}

TEST_F(Kinds, ABarrierHasNoBufferAndNoCount) {
  gradcube_session* session = open("job");
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_barrier(session, &request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(run(session, of(GRADCUBE_BARRIER, nullptr, 1, GRADCUBE_FLOAT32)), GRADCUBE_EINVAL);
  gradcube_collective barrier = of(GRADCUBE_BARRIER, nullptr, 0, 77);
  EXPECT_EQ(run(session, barrier), GRADCUBE_OK) << "its dtype is not read";
}

TEST_F(Kinds, TheFunctionsOfOneKindEachSubmitThatKind) {
  gradcube_session* session = open("job");
  float* buffer = floats(session, kSize * kChunk);
  std::uint64_t request = 0;
  const auto submitted = [&](int code) {
    EXPECT_EQ(code, GRADCUBE_OK) << gradcube_last_error(session);
    EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
    shared::Submission submission;
    EXPECT_TRUE(eventually([&] {
      submission = daemon_.heard().submission;
      return submission.request == request;
    }));
    return submission;
  };
  constexpr int kType = GRADCUBE_FLOAT32;
  constexpr int kMin = GRADCUBE_MIN;
  auto heard = submitted(gradcube_allreduce(session, buffer, 5, kType, kMin, &request));
  EXPECT_EQ(heard.collective.kind, GRADCUBE_ALL_REDUCE);
  EXPECT_EQ(heard.collective.op, kMin);
  heard = submitted(gradcube_reduce_scatter(session, buffer, 6, kType, kMin, &request));
  EXPECT_EQ(heard.collective.kind, GRADCUBE_REDUCE_SCATTER);
  EXPECT_EQ(heard.count, 6U) << "of one chunk";
  heard = submitted(gradcube_allgather(session, buffer, 7, kType, &request));
  EXPECT_EQ(heard.collective.kind, GRADCUBE_ALL_GATHER);
  heard = submitted(gradcube_broadcast(session, buffer, 8, kType, 3, &request));
  EXPECT_EQ(heard.collective.kind, GRADCUBE_BROADCAST);
  EXPECT_EQ(heard.collective.root, 3U);
  heard = submitted(gradcube_reduce(session, buffer, 9, kType, kMin, 4, &request));
  EXPECT_EQ(heard.collective.kind, GRADCUBE_REDUCE);
  EXPECT_EQ(heard.collective.root, 4U);
  EXPECT_EQ(heard.collective.op, kMin);
  heard = submitted(gradcube_barrier(session, &request));
  EXPECT_EQ(heard.collective.kind, GRADCUBE_BARRIER);
  EXPECT_EQ(heard.count, 0U);
}

TEST_F(Kinds, ACollectiveGoesToTheLaneThatItNames) {
  const gradcube_lane lanes[] = {{nullptr, 0}, {"bml", 7}, {"", -3}};
  gradcube_options options = GRADCUBE_OPTIONS_INIT;
  options.lanes = lanes;
  options.lane_count = 3;
  gradcube_session* session = open("job", &options);
  gradcube_collective collective =
      of(GRADCUBE_ALL_REDUCE, floats(session, 10), 10, GRADCUBE_FLOAT32);
  collective.lane = 2;
  EXPECT_EQ(run(session, collective), GRADCUBE_OK);
  EXPECT_TRUE(eventually([&] { return daemon_.heard().submission.collective.lane == 2; }));
  collective.lane = 3;
  EXPECT_EQ(run(session, collective), GRADCUBE_EINVAL);
  EXPECT_STREQ(gradcube_last_error(session), "invalid lane 3: expected 0 to 2");
}

TEST_F(Kinds, WhatCannotBeCombinedIsRefusedWithWhatCan) {
  gradcube_session* session = open("job");
  void* buffer = floats(session, 1000);
  const auto refused = [&](gradcube_kind kind, int dtype, int op, unsigned root) {
    gradcube_collective collective = of(kind, buffer, 4, dtype);
    collective.op = op;
    collective.root = root;
    EXPECT_EQ(run(session, collective), GRADCUBE_EINVAL) << kind << " " << dtype << " " << op;
    return std::string(gradcube_last_error(session));
  };
  const std::string no_average =
      " has no average: expected GRADCUBE_SUM, GRADCUBE_MIN or GRADCUBE_MAX, or a wider dtype";
  for (const gradcube_kind kind : {GRADCUBE_ALL_REDUCE, GRADCUBE_REDUCE_SCATTER, GRADCUBE_REDUCE}) {
    EXPECT_EQ(refused(kind, GRADCUBE_INT8, GRADCUBE_AVERAGE, 0), "int8" + no_average);
    EXPECT_EQ(refused(kind, GRADCUBE_UINT8, GRADCUBE_AVERAGE, 0), "uint8" + no_average);
    EXPECT_EQ(refused(kind, GRADCUBE_BOOL, GRADCUBE_AVERAGE, 0), "bool" + no_average);
    EXPECT_EQ(refused(kind, GRADCUBE_COMPLEX64, GRADCUBE_MAX, 0).find("complex numbers have no"),
              0U);
    EXPECT_EQ(refused(kind, GRADCUBE_BYTES, GRADCUBE_SUM, 0).find("bytes cannot be added"), 0U);
    EXPECT_EQ(refused(kind, GRADCUBE_UINT16, GRADCUBE_SUM, 0).find("uint16 cannot be added"), 0U);
    refused(kind, GRADCUBE_FLOAT32, 4, 0);
  }
  for (const gradcube_kind kind : {GRADCUBE_BROADCAST, GRADCUBE_REDUCE}) {
    EXPECT_EQ(refused(kind, GRADCUBE_FLOAT32, GRADCUBE_SUM, kSize),
              "invalid root 9: expected a rank, 0 to 8");
  }
  refused(static_cast<gradcube_kind>(7), GRADCUBE_FLOAT32, GRADCUBE_SUM, 0);
}

TEST_F(Kinds, CountsWhoseChunksDoNotFitAreRefused) {
  gradcube_session* session = open("job");
  void* buffer = floats(session, 1000);
  constexpr std::size_t kHeap = 64 << 20;
  for (const std::size_t count : {kHeap / 4 / kSize + 1, SIZE_MAX / kSize + 1, SIZE_MAX / 4 + 1}) {
    for (const gradcube_kind kind : {GRADCUBE_REDUCE_SCATTER, GRADCUBE_ALL_GATHER}) {
      EXPECT_EQ(run(session, of(kind, buffer, count, GRADCUBE_FLOAT32)), GRADCUBE_EINVAL) << count;
    }
  }
  // 900 elements lie in the buffer's 1000, 9 chunks of 113 do not.
  EXPECT_EQ(run(session, of(GRADCUBE_ALL_GATHER, buffer, 100, GRADCUBE_FLOAT32)), GRADCUBE_OK);
  EXPECT_EQ(run(session, of(GRADCUBE_ALL_GATHER, buffer, 113, GRADCUBE_FLOAT32)), GRADCUBE_EINVAL);
}

TEST_F(Kinds, ACollectiveOfAnUnknownSizeIsRefusedUnlessItAsksForNothingMore) {
  gradcube_session* session = open("job");
  struct {
    gradcube_collective known;
    std::uint64_t unknown;
  } newer{of(GRADCUBE_BARRIER, nullptr, 0, 0), 0};
  newer.known.size = sizeof(newer);
  EXPECT_EQ(run(session, newer.known), GRADCUBE_OK);
  newer.unknown = 1;
  EXPECT_EQ(run(session, newer.known), GRADCUBE_EINVAL);
  newer.known.size = 0;
  EXPECT_EQ(run(session, newer.known), GRADCUBE_EINVAL);
  EXPECT_NE(std::strstr(gradcube_last_error(session), "GRADCUBE_COLLECTIVE_INIT"), nullptr);
  std::uint64_t request = 0;
  EXPECT_EQ(gradcube_submit(session, nullptr, &request), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_submit(session, &newer.known, nullptr), GRADCUBE_EINVAL);
}

TEST_F(Kinds, RequestsEndInAnyOrder) {
  gradcube_session* session = open("backwards");
  std::vector<float*> buffers;
  std::vector<std::uint64_t> requests;
  for (int i = 0; i < 100; ++i) {
    buffers.push_back(floats(session, 10, static_cast<float>(i)));
    requests.push_back(start(session, buffers.back(), 10));
  }
  daemon_.release();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_EQ(gradcube_wait(session, requests[i], kLong), GRADCUBE_OK);
    ASSERT_EQ(buffers[i][9], static_cast<float>(9 * i));
  }
}

TEST_F(Kinds, ARequestThatStaysUnreportedLetsAllOthersGoOn) {
  gradcube_session* session = open("job");
  float* first = floats(session, 10);
  const std::uint64_t early = start(session, first, 10);
  float* buffer = floats(session, 10, 0);
  for (int i = 0; i < 3000; ++i) {  // numbers go round the table of 1024
    ASSERT_EQ(gradcube_wait(session, start(session, buffer, 10), kLong), GRADCUBE_OK);
  }
  EXPECT_EQ(gradcube_wait(session, early, kLong), GRADCUBE_OK);
  EXPECT_EQ(first[9], 9);
}

TEST_F(Kinds, ACompareReadsAnyBufferAndWritesNone) {
  gradcube_session* session = open("job");
  std::vector<std::uint8_t> memory = counted(100);
  auto* shared = elements<std::uint8_t>(session, 1000, 7);
  for (const std::span<std::uint8_t> buffer :
       {std::span(memory), std::span(memory).subspan(3, 50), std::span(shared, 1000),
        std::span(shared + 1, 3), std::span(memory).first(0)}) {
    const std::vector<std::uint8_t> before(buffer.begin(), buffer.end());
    const auto comparison = of(GRADCUBE_COMPARE, buffer.data(), buffer.size(), GRADCUBE_UINT8);
    EXPECT_EQ(run(session, comparison), GRADCUBE_OK) << gradcube_last_error(session);
    EXPECT_EQ(std::vector<std::uint8_t>(buffer.begin(), buffer.end()), before);
  }
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_compare(session, nullptr, 0, &request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
}

TEST_F(Kinds, ACompareLeavesItsBufferToTheTrainerAndReadsNoneThatIsTheDaemons) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 16);
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_compare(session, buffer, 64, &request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_compare(session, buffer + 1, 4, &request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_allreduce(session, buffer, 16, GRADCUBE_FLOAT32, GRADCUBE_SUM, &request),
            GRADCUBE_OK);
  EXPECT_EQ(gradcube_compare(session, buffer + 1, 4, &request), GRADCUBE_EINVAL);
}

TEST_F(Kinds, ACompareOfWhatIsNoBufferIsRefused) {
  gradcube_session* session = open("job");
  std::uint64_t request = 0;
  EXPECT_EQ(gradcube_compare(session, nullptr, 1, &request), GRADCUBE_EINVAL);
  float number = 0;
  const auto most = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(run(session, of(GRADCUBE_COMPARE, &number, most, GRADCUBE_FLOAT32)), GRADCUBE_EINVAL);
  EXPECT_TRUE(says(session, "larger than any buffer"));
}

}  // namespace
}  // namespace gradcube::trainer
