// What a trainer may ask for, and what its daemon hears of it.
#include <cstring>
#include <limits>

#include "tests/unit/trainer/session_fixture.h"
#include "trainer/src/base/sized.h"

namespace gradcube::trainer {
namespace {

class OptionsTest : public SessionTest {
 protected:
  Heard heard_of(const gradcube_options* options) {
    close(open("job", options));
    EXPECT_TRUE(eventually([&] { return daemon_.heard().hello.version != 0; }));
    return daemon_.heard();
  }

  std::string refusal(const gradcube_options& options) {
    gradcube_session* session = nullptr;
    EXPECT_EQ(gradcube_open(socket_.c_str(), "job", &options, &session), GRADCUBE_EINVAL);
    EXPECT_EQ(session, nullptr);
    return gradcube_last_error(nullptr);
  }

  gradcube_options options_ = GRADCUBE_OPTIONS_INIT;
};

TEST_F(OptionsTest, WithoutOptionsADaemonHearsTheDefaults) {
  const Heard heard = heard_of(nullptr);
  EXPECT_EQ(heard.hello.version, shared::kLayoutVersion);
  EXPECT_EQ(heard.hello.reproducible, 0U);
  EXPECT_EQ(heard.hello.trainers, 1U);
  EXPECT_EQ(heard.hello.local, -1);
  EXPECT_EQ(heard.hello.rank, -1);
  EXPECT_EQ(heard.hello.weight, 1U);
  EXPECT_EQ(heard.hello.lane_count, 1U);
  EXPECT_STREQ(heard.hello.lanes[0].algorithm, "");
  EXPECT_EQ(heard.hello.lanes[0].priority, 0);
  EXPECT_TRUE(heard.members.empty());
}

TEST_F(OptionsTest, ADaemonHearsLanesWeightRankAndTheMembersInOrder) {
  const std::string longest(55, 'x');
  const gradcube_lane lanes[] = {{"bml", 3}, {longest.c_str(), -2}, {nullptr, 0}};
  const std::uint32_t members[] = {8, 0, 65535, 4};
  options_.lanes = lanes;
  options_.lane_count = 3;
  options_.weight = 5;
  options_.rank = 65535;
  options_.members = members;
  options_.member_count = 4;
  const Heard heard = heard_of(&options_);
  ASSERT_EQ(heard.hello.lane_count, 3U);
  EXPECT_STREQ(heard.hello.lanes[0].algorithm, "bml");
  EXPECT_EQ(heard.hello.lanes[0].priority, 3);
  EXPECT_EQ(heard.hello.lanes[1].algorithm, longest);
  EXPECT_EQ(heard.hello.lanes[1].priority, -2);
  EXPECT_STREQ(heard.hello.lanes[2].algorithm, "");
  EXPECT_EQ(heard.hello.weight, 5U);
  EXPECT_EQ(heard.hello.rank, 65535);
  EXPECT_EQ(heard.members, (std::vector<std::uint32_t>{0, 4, 8, 65535}));
}

TEST_F(OptionsTest, ADaemonHearsWhetherResultsAreToBeReproducible) {
  options_.reproducible = 1;
  EXPECT_EQ(heard_of(&options_).hello.reproducible, 1U);
  for (const int wrong : {2, -1}) {
    options_.reproducible = wrong;
    EXPECT_EQ(refusal(options_),
              "invalid options: reproducible is " + std::to_string(wrong) + ": expected 0 or 1");
  }
}

// What was compiled before the option was there does not have it.
TEST_F(OptionsTest, OptionsWithoutTheFieldAreNotReproducible) {
  options_.reproducible = 1;
  options_.size = offsetof(gradcube_options, reproducible);
  EXPECT_EQ(heard_of(&options_).hello.reproducible, 0U);
}

TEST_F(OptionsTest, AnAlgorithmAloneIsThatOfTheOnlyLane) {
  options_.algorithm = "ring";
  const Heard heard = heard_of(&options_);
  EXPECT_EQ(heard.hello.lane_count, 1U);
  EXPECT_STREQ(heard.hello.lanes[0].algorithm, "ring");
}

TEST_F(OptionsTest, LanesThatCannotBeAreRefused) {
  const gradcube_lane lanes[9] = {};
  options_.lane_count = 1;
  EXPECT_EQ(refusal(options_), "invalid options: lane_count is 1 but lanes is NULL: expected 0");
  options_.lanes = lanes;
  for (const std::size_t count : {std::size_t{0}, std::size_t{9}, SIZE_MAX}) {
    options_.lane_count = count;
    EXPECT_EQ(refusal(options_),
              "invalid options: lane_count is " + std::to_string(count) + ": expected 1 to 8");
  }
  options_.lane_count = 1;
  options_.algorithm = "ring";
  EXPECT_NE(refusal(options_).find("expected one of them"), std::string::npos);
}

TEST_F(OptionsTest, ANameThatIsTooLongIsRefusedAndShownInPart) {
  const std::string name(1000, 'a');
  options_.algorithm = name.c_str();
  const std::string message = refusal(options_);
  EXPECT_NE(message.find("expected at most 55 characters"), std::string::npos) << message;
  EXPECT_LT(message.size(), 300U);
}

TEST_F(OptionsTest, WeightsAndRanksThatCannotBeAreRefused) {
  options_.size = std::size_t{1} << 40;
  EXPECT_NE(refusal(options_).find("to 4096: begin with"), std::string::npos)
      << "nobody reads so far beyond the struct";
  options_.size = sizeof options_;
  options_.weight = 0;
  EXPECT_EQ(refusal(options_), "invalid options: weight is 0: expected 1 to 1000");
  options_.weight = 1001;
  EXPECT_EQ(refusal(options_), "invalid options: weight is 1001: expected 1 to 1000");
  options_.weight = 1;
  for (const int rank : {-2, 65536, std::numeric_limits<int>::min()}) {
    options_.rank = rank;
    EXPECT_NE(refusal(options_).find("rank is " + std::to_string(rank)), std::string::npos);
  }
}

TEST_F(OptionsTest, MembersThatCannotBeAreRefused) {
  const std::vector<std::uint32_t> members{3, 1, 3};
  options_.member_count = 3;
  EXPECT_EQ(refusal(options_),
            "invalid options: member_count is 3 but members is NULL: expected 0");
  options_.members = members.data();
  EXPECT_EQ(refusal(options_),
            "invalid options: members names server 3 twice: expected each server once");
  for (const std::size_t count : {std::size_t{0}, std::size_t{4097}, SIZE_MAX}) {
    options_.member_count = count;
    EXPECT_NE(refusal(options_).find("expected 1 to 4096"), std::string::npos);
  }
}

TEST_F(OptionsTest, OptionsOfAnUnknownSizeAreRefusedUnlessTheyAskForNothingMore) {
  struct {
    gradcube_options known = GRADCUBE_OPTIONS_INIT;
    std::uint64_t unknown = 0;
  } newer;
  newer.known.size = sizeof(newer);
  newer.known.weight = 4;
  EXPECT_EQ(heard_of(&newer.known).hello.weight, 4U);
  newer.unknown = 1;
  EXPECT_NE(refusal(newer.known).find("use a library as new as the header"), std::string::npos);
  for (const std::size_t size : {std::size_t{0}, offsetof(gradcube_options, reproducible) - 1}) {
    newer.known.size = size;
    EXPECT_NE(refusal(newer.known).find("begin with GRADCUBE_OPTIONS_INIT"), std::string::npos);
  }
}

TEST(Sized, TheMissingFieldsOfAnOlderStructKeepTheirDefaults) {
  struct Wishes {
    std::size_t size;
    int first;
    int second;
  };
  const Wishes older{offsetof(Wishes, second), 7, 7};
  Wishes wishes{sizeof(Wishes), 1, 2};
  EXPECT_EQ(read_sized(&older, offsetof(Wishes, second), "wishes", "INIT", wishes), "");
  EXPECT_EQ(wishes.first, 7);
  EXPECT_EQ(wishes.second, 2);
  EXPECT_EQ(wishes.size, sizeof(Wishes));
}

TEST_F(OptionsTest, ADaemonHearsTheTrainersPerServerAndThePlaceAmongThem) {
  options_.trainers_per_server = 16;
  options_.local = 15;
  const Heard heard = heard_of(&options_);
  EXPECT_EQ(heard.hello.trainers, 16U);
  EXPECT_EQ(heard.hello.local, 15);
}

TEST_F(OptionsTest, APlaceThatAServerHasNotIsRefused) {
  options_.trainers_per_server = 17;
  EXPECT_EQ(refusal(options_), "invalid options: trainers_per_server is 17: expected 1 to 16");
  options_.trainers_per_server = 0;
  EXPECT_EQ(refusal(options_), "invalid options: trainers_per_server is 0: expected 1 to 16");
  options_.trainers_per_server = 3;
  for (const int local : {3, -2}) {
    options_.local = local;
    EXPECT_EQ(refusal(options_),
              "invalid options: local is " + std::to_string(local) +
                  ": expected 0 to 2, below trainers_per_server, or -1 for any place that is free");
  }
}

}  // namespace
}  // namespace gradcube::trainer
