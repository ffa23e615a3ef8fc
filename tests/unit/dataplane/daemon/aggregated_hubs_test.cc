// What a node answers to those that call it as the aggregator of a hub. It has no engines here: so
// no hub comes to be, and what is told of that is what callers are told of any failure.
#include "dataplane/daemon/hub/aggregated_hubs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "dataplane/engine/event_queue.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

using control::HubCall;
using control::HubState;
using control::Instant;
using testing::HasSubstr;

constexpr bcube::ServerId kAggregating = 3;

class AggregatedHubsTest : public testing::Test {
 protected:
  static HubCall call_of(std::uint32_t number = 1, protocol::JobId job = 7) {
    HubCall call;
    call.hub = {job, number};
    call.job = "mnist";
    call.members = {0, 1};
    call.window = 8;
    call.table_bytes = static_cast<std::uint32_t>(table().size());
    return call;
  }
  static std::string table() {
    return hub_table({{"key", 10, aggregation::DataType::float32}}, "sgd", 32768, {kAggregating});
  }

  // What is answered, of which there is one thing at most.
  std::optional<control::NodeMessage> answer_to(decltype(control::NodeMessage::body) body,
                                                bcube::ServerId from = 0) {
    control::NodeMessages out;
    hubs_.on_message({from, kAggregating, std::move(body)}, now_, out);
    EXPECT_LE(out.size(), 1U);
    if (out.empty()) return std::nullopt;
    EXPECT_EQ(out[0].to, from);
    return out[0];
  }
  static bool asks(const std::optional<control::NodeMessage>& answer) {
    return answer.has_value() && std::holds_alternative<control::HubAsk>(answer->body);
  }
  static HubState state_in(const std::optional<control::NodeMessage>& answer) {
    const auto* state = answer.has_value() ? std::get_if<HubState>(&answer->body) : nullptr;
    return state == nullptr ? HubState{} : *state;
  }
  void look() {
    told_.clear();
    hubs_.look(now_, told_);
  }
  void expect_one(const HubCall& call, HubState::Progress progress, const std::string& why) {
    const std::vector<HubFacts> all = hubs_.facts();
    ASSERT_EQ(all.size(), 1U);
    const HubFacts& facts = all.front();
    EXPECT_EQ(facts.call, call);
    EXPECT_EQ(facts.state.progress, progress);
    EXPECT_THAT(facts.state.why, HasSubstr(why));
  }

  control::Topology topology_ = control::parse_topology("star:4", "here");
  EventQueue events_;
  NodeEngines engines_{topology_.space(), kAggregating, {}, {}, {}, events_};
  DepartedSessions departed_;
  MemoryQuota* quota_ = nullptr;
  HubSurroundings around_{topology_, aggregation::select_kernels(0), departed_, quota_};
  AggregatedHubs hubs_{kAggregating, around_, engines_};
  Instant now_ = std::chrono::seconds(100);
  control::NodeMessages told_;
};

TEST_F(AggregatedHubsTest, AskForTheTableAndTellOnceThatThereIsNoHub) {
  EXPECT_TRUE(asks(answer_to(call_of())));
  EXPECT_FALSE(answer_to(control::HubPart{{7, 1}, 0, table()}).has_value());
  look();
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(state_in(told_[0]).progress, HubState::Progress::failed);
  EXPECT_THAT(state_in(told_[0]).why, HasSubstr("server [3]"));
  look();
  EXPECT_TRUE(told_.empty()) << "it is tried once";
  EXPECT_EQ(state_in(answer_to(call_of())).progress, HubState::Progress::failed)
      << "and told again";
  EXPECT_FALSE(answer_to(control::HubEnd{{7, 1}}).has_value());
  EXPECT_TRUE(hubs_.empty());
}

TEST_F(AggregatedHubsTest, HaveNothingOfAHubThatStoodAtAFormerDaemon) {
  HubCall call = call_of();
  call.stands = true;
  const HubState state = state_in(answer_to(call));
  EXPECT_EQ(state.progress, HubState::Progress::failed);
  EXPECT_EQ(state.code, GRADCUBE_EPEER);
  EXPECT_THAT(state.why, HasSubstr("started anew"));
  EXPECT_TRUE(hubs_.empty());
}

TEST_F(AggregatedHubsTest, ShowWhoCallsAndWhatHasComeOfIt) {
  HubCall call = call_of(3, 8);
  call.trainers = 2;
  call.user = 1000;
  EXPECT_TRUE(asks(answer_to(call)));
  expect_one(call, HubState::Progress::making, "");
  EXPECT_FALSE(answer_to(control::HubPart{{8, 3}, 0, table()}).has_value());
  look();
  expect_one(call, HubState::Progress::failed, "server [3]");
  EXPECT_FALSE(answer_to(control::HubEnd{{8, 3}}).has_value());
  EXPECT_TRUE(hubs_.empty());
}

// The end of the one before was lost.
TEST_F(AggregatedHubsTest, HaveOneHubOfAJobAtATimeTheNewest) {
  EXPECT_TRUE(asks(answer_to(call_of(1))));
  EXPECT_TRUE(asks(answer_to(call_of(2))));
  EXPECT_FALSE(answer_to(call_of(1)).has_value()) << "it comes late";
  EXPECT_FALSE(answer_to(control::HubEnd{{7, 1}}).has_value());
  EXPECT_TRUE(asks(answer_to(call_of(2))));
  EXPECT_FALSE(answer_to(call_of(3), 1).has_value()) << "another server calls for this job";
}

TEST_F(AggregatedHubsTest, HearOnlyTheCaller) {
  EXPECT_TRUE(asks(answer_to(call_of())));
  EXPECT_FALSE(answer_to(call_of(), 1).has_value());
  EXPECT_FALSE(answer_to(control::HubEnd{{7, 1}}, 1).has_value());
  EXPECT_FALSE(hubs_.empty());
}

TEST_F(AggregatedHubsTest, AreDividedAmongUsersAsTheirTablesAre) {
  HubSurroundings dividing = around_;
  dividing.share.is_divided = true;
  AggregatedHubs divided(kAggregating, dividing, engines_);
  protocol::JobId job = 0;
  const auto is_taken = [&](std::uint32_t user, std::uint32_t table_bytes) {
    HubCall call = call_of(1, ++job);
    call.user = user;
    call.table_bytes = table_bytes;
    control::NodeMessages out;
    divided.on_message({call.members.front(), kAggregating, call}, now_, out);
    return out.size() == 1 && asks(out.front());
  };
  for (const auto& [user, has] :
       std::vector<std::pair<std::uint32_t, unsigned>>{{7, 31}, {8, 16}, {9, 8}}) {
    for (unsigned i = 0; i < has; ++i) ASSERT_TRUE(is_taken(user, 100)) << user;
  }
  EXPECT_FALSE(is_taken(9, 100));
  EXPECT_TRUE(is_taken(10, shared::kMostHubTableBytes / 2));
  EXPECT_FALSE(is_taken(11, shared::kMostHubTableBytes)) << "more than would be left for others";
}

TEST_F(AggregatedHubsTest, AreBoundedWhateverIsCalledFor) {
  for (protocol::JobId job = 1; job <= AggregatedHubs::kMost; ++job) {
    ASSERT_TRUE(asks(answer_to(call_of(1, job))));
  }
  EXPECT_EQ(state_in(answer_to(call_of(1, AggregatedHubs::kMost + 1))).code, GRADCUBE_EAGAIN);
  now_ += 2 * control::kHubSilence;
  look();
  EXPECT_TRUE(hubs_.empty()) << "nothing was heard of their callers";
  HubCall large = call_of();
  large.table_bytes = shared::kMostHubTableBytes;
  for (protocol::JobId job = 1; job <= 2; ++job) {
    large.hub.job = job;
    EXPECT_TRUE(asks(answer_to(large)));
  }
  large.hub.job = 3;
  EXPECT_EQ(state_in(answer_to(large)).code, GRADCUBE_EAGAIN);
}

}  // namespace
}  // namespace gradcube::dataplane
