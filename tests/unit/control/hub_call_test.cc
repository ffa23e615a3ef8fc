// A hub's caller and its aggregator, over messages that are lost, doubled and reordered.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "control/jobs/hub/hub_caller.h"
#include "control/jobs/hub/hub_fetch.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::control {
namespace {

using testing::HasSubstr;

constexpr bcube::ServerId kCaller = 1;
constexpr bcube::ServerId kAggregator = 7;

HubCall call_of(std::size_t table_bytes) {
  HubCall call;
  call.hub = {42, 3};
  call.job = "mnist";
  call.members = {1, 2};
  call.table_bytes = static_cast<std::uint32_t>(table_bytes);
  return call;
}

std::string table_of(std::size_t bytes) {
  std::string table(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) table[i] = static_cast<char>(i * 7 + i / 251);
  return table;
}

class HubCallTest : public testing::Test {
 protected:
  explicit HubCallTest(std::size_t bytes = 3 * kHubPartBytes + 5)
      : table_(table_of(bytes)),
        caller_(kCaller, kAggregator, "[2,1]", call_of(bytes),
                std::make_shared<const std::string>(table_), now_) {}

  // One of `loss` messages is lost, and one of `loss` comes twice.
  void step(unsigned loss = 0) {
    now_ += std::chrono::milliseconds(5);
    NodeMessages out;
    caller_.on_time(now_, out);
    std::shuffle(under_way_.begin(), under_way_.end(), random_);
    for (const NodeMessage& message : std::exchange(under_way_, {})) deliver(message, out);
    if (fetch_.has_value() && fetch_->has_table()) {
      received_ = fetch_->take_table();
      fetch_->set_state(HubState::Progress::stands);
      fetch_->tell(out);
    }
    for (const NodeMessage& message : out) {
      if (loss != 0 && random_() % loss == 0) continue;
      under_way_.push_back(message);
      if (loss != 0 && random_() % loss == 0) under_way_.push_back(message);
    }
  }
  void run(Instant time, unsigned loss = 0) {
    for (const Instant end = now_ + time; now_ < end;) step(loss);
  }

  void deliver(const NodeMessage& message, NodeMessages& out) {
    if (message.to == kCaller) return caller_.on_message(message, now_, out);
    if (!answers_) return;
    if (const auto* call = std::get_if<HubCall>(&message.body)) {
      if (!fetch_.has_value()) fetch_.emplace(message, *call, now_);
      fetch_->on_call(now_, out);
    } else if (const auto* part = std::get_if<HubPart>(&message.body); part && fetch_) {
      fetch_->on_part(*part, now_, out);
    }
  }

  std::mt19937_64 random_{1};
  Instant now_ = std::chrono::seconds(100);
  std::string table_;
  HubCaller caller_;
  std::optional<HubFetch> fetch_;
  std::string received_;
  NodeMessages under_way_;
  bool answers_ = true;
};

TEST_F(HubCallTest, BringsTheTableToTheAggregatorAndHearsThatTheHubStands) {
  run(std::chrono::milliseconds(200));
  EXPECT_EQ(received_, table_);
  EXPECT_TRUE(caller_.stands());
  EXPECT_FALSE(caller_.failure().has_value());
}

TEST_F(HubCallTest, BringsItWhateverIsLostDoubledAndReordered) {
  const std::uint64_t seed = protocol::test_seed(20261125);
  SCOPED_TRACE(protocol::seed_trace(seed));
  random_.seed(seed);
  run(std::chrono::seconds(1), 3);
  EXPECT_EQ(received_, table_);
  EXPECT_TRUE(caller_.stands());
}

TEST_F(HubCallTest, GoesOnForAsLongAsBothLive) {
  run(std::chrono::seconds(10));
  EXPECT_FALSE(caller_.failure().has_value());
  EXPECT_FALSE(fetch_->is_forsaken(now_));
}

TEST_F(HubCallTest, NamesAnAggregatorOfWhichNothingIsHeard) {
  run(std::chrono::milliseconds(200));
  answers_ = false;
  run(kHubSilence - std::chrono::milliseconds(300));
  EXPECT_FALSE(caller_.failure().has_value());
  run(std::chrono::milliseconds(400));
  ASSERT_TRUE(caller_.failure().has_value());
  EXPECT_EQ(caller_.failure()->code, 0);
  EXPECT_THAT(caller_.failure()->why, HasSubstr("[2,1]"));
  EXPECT_THAT(caller_.failure()->why, HasSubstr("\"mnist\""));
  NodeMessages out;
  caller_.on_time(now_ + std::chrono::seconds(1), out);
  EXPECT_TRUE(out.empty()) << "it calls no more";
}

TEST_F(HubCallTest, TellsWhyTheAggregatorHasNone) {
  NodeMessages out;
  caller_.on_message(
      {kAggregator, kCaller, HubState{{42, 3}, HubState::Progress::failed, -5, "no"}}, now_, out);
  ASSERT_TRUE(caller_.failure().has_value());
  EXPECT_EQ(caller_.failure()->code, -5);
  EXPECT_EQ(caller_.failure()->why, "no");
}

TEST_F(HubCallTest, HearsNobodyButItsAggregator) {
  NodeMessages out;
  caller_.on_message(
      {kAggregator + 1, kCaller, HubState{{42, 3}, HubState::Progress::failed, -5, ""}}, now_, out);
  caller_.on_message({kAggregator + 1, kCaller, HubAsk{{42, 3}, 0}}, now_, out);
  EXPECT_FALSE(caller_.failure().has_value());
  EXPECT_TRUE(out.empty());
}

TEST_F(HubCallTest, HasNoPartBehindTheLastOne) {
  NodeMessages out;
  for (const std::uint32_t part : {4U, 5U, 2048U}) {
    caller_.on_message({kAggregator, kCaller, HubAsk{{42, 3}, part}}, now_, out);
  }
  EXPECT_TRUE(out.empty());
}

TEST_F(HubCallTest, TakesOnlyThePartThatWasAskedForAndAllOfIt) {
  NodeMessages out;
  HubFetch fetch({kCaller, kAggregator, call_of(table_.size())}, call_of(table_.size()), now_);
  const auto part = [&](std::uint32_t number, std::string bytes) {
    fetch.on_part({{42, 3}, number, std::move(bytes)}, now_, out);
  };
  part(1, table_.substr(kHubPartBytes, kHubPartBytes));
  part(0, "short");
  EXPECT_TRUE(out.empty());
  for (std::uint32_t number = 0; number < 4; ++number) {
    EXPECT_FALSE(fetch.has_table());
    part(number, table_.substr(number * kHubPartBytes, kHubPartBytes));
  }
  ASSERT_TRUE(fetch.has_table());
  EXPECT_EQ(fetch.take_table(), table_);
  EXPECT_FALSE(fetch.has_table()) << "it is taken once";
}

TEST_F(HubCallTest, IsForsakenWhenItsCallerHasGone) {
  run(std::chrono::milliseconds(200));
  EXPECT_FALSE(fetch_->is_forsaken(now_ + kHubSilence));
  EXPECT_TRUE(fetch_->is_forsaken(now_ + 2 * kHubSilence));
}

}  // namespace
}  // namespace gradcube::control
