// The hubs of a job at one server, without engines.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_HUB_LIFETIMES_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_HUB_LIFETIMES_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataplane/daemon/hub/hub_lifetime.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"
#include "tests/unit/dataplane/engine/small_hub.h"

namespace gradcube::dataplane {

inline constexpr uid_t kUser = 1000;
inline constexpr std::uint64_t kQuota = 1'000'000;

class HubLifetimes : public testing::Test {
 protected:
  ~HubLifetimes() override { end_makings(); }
  // Nobody waits for them: their threads end, and then they do.
  void end_makings() {
    for (const auto& making : life_.take_dropped()) {
      while (!making->is_idle()) std::this_thread::yield();
    }
  }

  static HubWish wish(std::uint32_t number = 1,
                      const std::string& table = hub_table(small_keys())) {
    return {.job = "mnist", .server = "[0,1]", .number = number, .table = HubTableSource(table)};
  }
  static std::string table_of(std::uint64_t elements) {
    return hub_table({{"large", elements, aggregation::DataType::float32}});
  }
  void ask(unsigned local, const HubWish& wish) {
    life_.ask(local, wish, {small_hub_shape(2)}, MemoryQuota::Charge(quota_, kUser));
  }
  // What is told now, without waiting.
  std::vector<HubAnswer> work() {
    return life_.work(
        [this](const std::shared_ptr<ServerHub>& hub) {
          ++used_;
          if (use) use(hub);
        },
        is_whole);
  }
  // The next that are told: a hub is made in a time of its own.
  std::vector<HubAnswer> answers(std::size_t least = 1) {
    std::vector<HubAnswer> told = work();
    while (told.size() < least) {
      std::this_thread::yield();
      for (HubAnswer& answer : work()) told.push_back(std::move(answer));
    }
    return told;
  }
  void expect_refused(const HubAnswer& answer, std::int32_t code, const std::string& text) {
    EXPECT_EQ(answer.code, code) << answer.text;
    EXPECT_THAT(answer.text, testing::HasSubstr(text));
    EXPECT_EQ(answer.descriptor, -1);
    EXPECT_EQ(answer.bytes, 0U);
  }
  void expect_one_refused(std::int32_t code, const std::string& text) {
    const std::vector<HubAnswer> told = answers();
    ASSERT_EQ(told.size(), 1U);
    expect_refused(told[0], code, text);
  }

  std::function<void(const std::shared_ptr<ServerHub>&)> use;
  HubLifetime::IsWhole is_whole;
  MemoryQuota quota_{kQuota};
  HubLifetime life_;
  unsigned used_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_HUB_LIFETIMES_FIXTURE_H_
