// Callers that let go of what their aggregator is still making, again and again.

#include "dataplane/daemon/hub/aggregated_hubs.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "tests/simulation/work.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using control::HubState;

class GivenUpHubs : public testing::Test {
 protected:
  static constexpr bcube::ServerId kAggregator = 3;
  // Whoever does not bound them begins all of these.
  static constexpr protocol::JobId kCallers = 200;

  ~GivenUpHubs() override {
    while (!departed_of_hubs_end()) std::this_thread::yield();
  }

  void tell(decltype(control::NodeMessage::body) body) {
    hubs_->on_message({0, kAggregator, std::move(body)}, now_, out_);
  }
  // Why the call is refused; nothing if it is taken.
  std::optional<HubState> call(protocol::JobId job) {
    control::HubCall call;
    call.hub = {job, 1};
    call.job = "hostile";
    call.members = {0, 1};
    call.window = 1;
    call.table_bytes = static_cast<std::uint32_t>(table_.size());
    out_.clear();
    tell(call);
    if (out_.size() != 1) return std::nullopt;
    const auto* state = std::get_if<HubState>(&out_[0].body);
    return state == nullptr ? std::nullopt : std::optional(*state);
  }
  // What takes a thread a while is begun, and given up at once.
  void begin_and_give_up(protocol::JobId job) {
    tell(control::HubPart{{job, 1}, 0, table_});
    look();
    const std::vector<dataplane::HubFacts> made = hubs_->facts();
    ASSERT_EQ(made.size(), 1U);
    ASSERT_EQ(made[0].state.progress, HubState::Progress::making) << made[0].state.why;
    tell(control::HubEnd{{job, 1}});
    ASSERT_TRUE(hubs_->empty());
  }
  void look() { hubs_->look(now_, out_); }
  // The threads of what was given up have ended.
  bool departed_of_hubs_end() {
    hubs_.reset();
    departed_.reap();
    return departed_.empty();
  }

  SimulatedCluster cluster_{settings_of({{"topology", "star:4"}})};
  const control::Topology topology_ = control::parse_topology("star:4", "test");
  dataplane::DepartedSessions departed_;
  dataplane::MemoryQuota* quota_ = nullptr;
  // As those of the node, whose engines they use.
  std::optional<dataplane::AggregatedHubs> hubs_{
      std::in_place, kAggregator,
      dataplane::HubSurroundings{topology_, aggregation::select_kernels(0), departed_, quota_},
      cluster_.nodes().at(kAggregator).engines()};
  // Many chunks: numbering them takes a thread some milliseconds.
  const std::string table_ = dataplane::hub_table(
      {{"long", 400'000'000, aggregation::DataType::float32}}, "sgd", 4096, {kAggregator});
  control::Instant now_ = std::chrono::seconds(1);
  control::NodeMessages out_;
};

TEST_F(GivenUpHubs, AreBoundedAndTheCallerIsToldWhy) {
  protocol::JobId job = 1;
  std::optional<HubState> refusal;
  for (; job <= kCallers; ++job) {
    refusal = call(job);
    if (refusal.has_value()) break;
    begin_and_give_up(job);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_LE(hubs_->given_up(), dataplane::AggregatedHubs::kMostGivenUp);
  }
  ASSERT_TRUE(refusal.has_value()) << "all were begun";
  EXPECT_EQ(refusal->progress, HubState::Progress::failed);
  EXPECT_EQ(refusal->code, GRADCUBE_EAGAIN);
  EXPECT_NE(refusal->why.find("hubs that nobody waits for: try again later"), std::string::npos)
      << refusal->why;
  while (hubs_->given_up() != 0) {
    look();
    std::this_thread::yield();
  }
  EXPECT_FALSE(call(job).has_value()) << "when they have ended, there is room";
}

}  // namespace
}  // namespace gradcube::simulation
