// Averages of types whose sum may overflow, through a whole cluster.

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using aggregation::DataType;
using aggregation::Operation;

constexpr std::uint64_t kCount = 5'003;
constexpr std::uint64_t kBufferBytes = 48'000;

class Averages : public testing::Test {
 protected:
  Averages() : cluster_(settings_of({{"topology", "bcube:3,2"}, {"mtu", "1500"}})) {
    trainers_ = cluster_.join_all("job", 5 * kBufferBytes);
  }
  ~Averages() override { leave_all(cluster_, trainers_); }

  // Submits the average of kCount elements with this value at every trainer.
  template <typename Element>
  void submit(DataType dtype, Element value, unsigned buffer = 0) {
    const std::uint64_t offset = shared::kHeapOffset + buffer * kBufferBytes;
    for (const auto& trainer : trainers_) {
      std::fill_n(reinterpret_cast<Element*>(trainer->at(offset)), kCount, value);
      trainer->submit(offset, kCount, dtype, Operation::average);
    }
  }
  template <typename Element>
  static void write(SimulatedTrainer& trainer, std::size_t index, Element value) {
    std::memcpy(trainer.at(shared::kHeapOffset) + index * sizeof value, &value, sizeof value);
  }
  void finish() {
    ASSERT_TRUE(cluster_.run_until([&] { return all_idle(trainers_); }, kSecond));
  }
  void expect_all_end_with(std::int32_t code) {
    for (const auto& trainer : trainers_) {
      for (const shared::Completion& completion : trainer->take_completions()) {
        EXPECT_EQ(completion.code, code);
      }
    }
  }
  template <typename Element>
  void expect_result(Element value) {
    finish();
    expect_all_end_with(0);
    for (const auto& trainer : trainers_) {
      for (std::size_t i = 0; i < kCount; ++i) {
        Element found;
        std::memcpy(&found, trainer->at(shared::kHeapOffset) + i * sizeof found, sizeof found);
        ASSERT_EQ(found, value) << "element " << i << " at server " << trainer->rank();
      }
    }
  }
  void expect_told_of_overflow(const std::vector<std::string>& words) {
    for (const auto& trainer : trainers_) {
      ASSERT_FALSE(cluster_.told(*trainer).empty());
      const shared::Notice& notice = cluster_.told(*trainer).back().notice;
      EXPECT_EQ(notice.code, GRADCUBE_EOVERFLOW);
      for (const std::string& word : words) {
        EXPECT_NE(std::string(notice.text).find(word), std::string::npos) << notice.text;
      }
    }
  }

  SimulatedCluster cluster_;
  Trainers trainers_;
};

TEST_F(Averages, OfNineTrainersWith10000InFloat16Are10000) {
  submit(DataType::float16, aggregation::float32_to_float16(10000));
  expect_result(aggregation::float32_to_float16(10000));
}

TEST_F(Averages, OfTheGreatestSmallFloatsAreTheGreatest) {
  for (const auto& [dtype, greatest] :
       {std::pair<DataType, std::uint16_t>{DataType::float16, 0x7bff},
        {DataType::bfloat16, 0x7f7f},
        {DataType::bfloat16, 0xff7f}}) {
    submit(dtype, greatest);
    expect_result(greatest);
  }
}

TEST_F(Averages, OfAnInfinityAmongSmallFloatsAreTheInfinity) {
  for (const auto& [dtype, infinity] :
       {std::pair<DataType, std::uint16_t>{DataType::float16, 0xfc00},
        {DataType::bfloat16, 0x7f80}}) {
    submit(dtype, infinity);
    for (std::size_t i = 0; i < kCount; ++i) write(*trainers_[7], i, std::uint16_t{0x1234});
    expect_result(infinity);
  }
}

TEST_F(Averages, OfIntegersWhoseSumFitsAreExactAndTruncated) {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max() / 9;
  submit(DataType::int32, most);
  expect_result(most);
  submit(DataType::int32, -7);
  for (std::size_t i = 0; i < kCount; ++i) write(*trainers_[4], i, -6);
  expect_result(std::int32_t{-6});  // of -62 / 9
}

TEST_F(Averages, OfInt32BeyondItsRangeFailOnEveryTrainerAndTheJobGoesOn) {
  // The sum of three fits, the sum of nine does not: the last step overflows.
  submit(DataType::int32, std::int32_t{500'000'000});
  finish();
  expect_all_end_with(GRADCUBE_EOVERFLOW);
  expect_told_of_overflow(
      {"collective 1", "\"job\"", "step 1", "int32", "server [", "elements", "int64 or float64"});
  submit(DataType::int32, std::int32_t{100});
  expect_result(std::int32_t{100});
}

TEST_F(Averages, OfInt64BeyondItsRangeFailOnEveryTrainerAndTheJobGoesOn) {
  // One element of one pair of servers: the first step overflows.
  submit(DataType::int64, std::int64_t{1});
  finish();
  expect_all_end_with(0);
  for (const unsigned server : {0U, 1U, 3U}) {
    write(*trainers_[server], kCount - 1, std::numeric_limits<std::int64_t>::min());
  }
  for (const auto& trainer : trainers_) {
    trainer->submit(shared::kHeapOffset, kCount, DataType::int64, Operation::average);
  }
  finish();
  expect_all_end_with(GRADCUBE_EOVERFLOW);
  expect_told_of_overflow({"collective 2", "step 0", "5002", "average as float64"});
  submit(DataType::int64, std::int64_t{-9});
  expect_result(std::int64_t{-9});
}

TEST_F(Averages, AreTheOnlyOperationInWhichIntegersMayNotOverflow) {
  Collective collective;
  collective.count = kCount;
  collective.dtype = DataType::int32;
  allreduce(cluster_, trainers_, collective);
}

TEST_F(Averages, ThatOverflowFailWhatIsInFlightWithTheSameCutForAll) {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  for (unsigned i = 0; i < 5; ++i) submit(DataType::int32, i == 2 ? most : 9, i);
  finish();
  for (const auto& trainer : trainers_) {
    const auto completions = trainer->take_completions();
    ASSERT_EQ(completions.size(), 5u);
    for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(completions[i].code, GRADCUBE_EOVERFLOW);
  }
  submit(DataType::int32, std::int32_t{3});
  expect_result(std::int32_t{3});
}

}  // namespace
}  // namespace gradcube::simulation
