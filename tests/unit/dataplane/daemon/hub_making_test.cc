// How a hub of one server comes by its memory.

#include "dataplane/daemon/hub/hub_making.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"
#include "tests/unit/dataplane/engine/small_hub.h"

namespace gradcube::dataplane {
namespace {

// Its user has no room for a second hub.
class HubMakings : public testing::Test {
 protected:
  static constexpr uid_t kPayer = 1000;
  static constexpr std::uint64_t kAll = 1'000'000;

  HubMakings() {
    const std::unique_ptr<HubMaking> first = making(1);
    EXPECT_TRUE(first->go_on());
    before_ = first->hub();
    EXPECT_TRUE(others_.set(kAll - quota_.used(kPayer)));
  }

  std::unique_ptr<HubMaking> making(std::uint32_t number) {
    HubWish wish{.job = "mnist",
                 .server = "[0,1]",
                 .number = number,
                 .table = HubTableSource(hub_table(small_keys())),
                 .threads = std::launch::deferred};
    return std::make_unique<HubMaking>(std::move(wish), HubDesign{small_hub_shape(2)},
                                       MemoryQuota::Charge(quota_, kPayer));
  }
  static void expect_refused(HubMaking& making) {
    try {
      making.hub();
      FAIL() << "it was made";
    } catch (const control::SetupError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("and use 1M"));
    }
  }

  MemoryQuota quota_{kAll};
  MemoryQuota::Charge others_{quota_, kPayer};
  std::shared_ptr<ServerHub> before_;
};

TEST_F(HubMakings, AreRefusedAtOnceWhereTheMemoryOfTheOneBeforeStays) {
  const std::unique_ptr<HubMaking> second = making(2);
  EXPECT_TRUE(second->go_on());
  expect_refused(*second);
}

TEST_F(HubMakings, WaitForTheMemoryOfTheOneBefore) {
  before_->readers_have_left();
  const std::unique_ptr<HubMaking> second = making(2);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(second->go_on());
  EXPECT_TRUE(second->is_idle()) << "no thread of it runs";
  before_.reset();
  EXPECT_TRUE(second->go_on());
  EXPECT_EQ(second->hub()->number(), 2U);
}

TEST_F(HubMakings, WaitForTheMemoryOfOneThatNobodyGot) {
  auto pages = before_->memory().charge();  // until they have gone
  before_.reset();
  const std::unique_ptr<HubMaking> second = making(2);
  EXPECT_FALSE(second->go_on());
  pages.reset();
  EXPECT_TRUE(second->go_on());
  EXPECT_EQ(second->hub()->number(), 2U);
}

TEST_F(HubMakings, AreRefusedWhereTheMemoryOfTheOneBeforeDoesNotComeBack) {
  before_->readers_have_left();
  const std::unique_ptr<HubMaking> second = making(2);
  while (!second->go_on()) continue;
  expect_refused(*second);
}

// By their numbers: frames have room for 63.
TEST(HubMaking, RefusesMoreExecutorsThanFramesCanName) {
  MemoryQuota quota(std::uint64_t{1} << 30);
  for (const auto& [roots, engines] :
       {std::pair("0 1 2 3 4 5 6 7 8", 7U), std::pair("0 1 2 3 4 5 6 7", 8U)}) {
    ServerHubShape shape = small_hub_shape();
    shape.choice =
        std::make_shared<control::PlanChoice>(std::make_shared<control::Plan>(control::make_plan(
            std::string("ps:") + roots, control::parse_topology("star:9", "test"), "test")));
    shape.all_trainers = 9;
    shape.engines = engines;
    HubWish wish{.job = "mnist",
                 .server = "[0]",
                 .number = 1,
                 .table = HubTableSource(hub_table(small_keys())),
                 .threads = std::launch::deferred};
    HubMaking making(std::move(wish), HubDesign{shape}, MemoryQuota::Charge(quota, 1000));
    EXPECT_TRUE(making.go_on());
    const std::string refusal = control::message_of<control::UsageError>([&] { making.hub(); });
    EXPECT_EQ(refusal, engines == 7 ? ""
                                    : "job \"mnist\": its hub on server [0]: its plan and 8 "
                                      "engines number 64 executors: expected at most 63");
  }
}

}  // namespace
}  // namespace gradcube::dataplane
