// The table against std::map, with keys as frames make them.

#include "dataplane/engine/flows/flow_table.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

#include "dataplane/fabric/emulated/random.h"
#include "tests/unit/dataplane/engine/loose_flows.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

// Few values for each field, so that keys differ in single bits and runs of probes form.
std::uint64_t draw_key(SeededRandom& random, protocol::JobId job) {
  protocol::TransportHeader transport{};
  transport.job = job;
  transport.lane = static_cast<std::uint8_t>(random.below(protocol::kMaxLanes));
  transport.thread = static_cast<std::uint8_t>(random.below(4));
  transport.step = static_cast<std::uint8_t>(random.below(4));
  transport.stage =
      random.below(2) == 0 ? protocol::Stage::aggregation : protocol::Stage::broadcast;
  return flow_key(transport, static_cast<bcube::ServerId>(random.below(16)));
}

TEST(FlowTable, FindsWhatAMapFindsWhileJobsComeAndGo) {
  const std::uint64_t seed = protocol::test_seed(20);
  SCOPED_TRACE(protocol::seed_trace(seed));
  SeededRandom random(seed);
  LooseFlows flows;
  FlowTable table;
  std::map<std::uint64_t, Flow*> model;
  for (unsigned turn = 0; turn < 20'000; ++turn) {
    const auto job = static_cast<protocol::JobId>(1 + random.below(5));
    const std::uint64_t key = draw_key(random, job);
    const auto known = model.find(key);
    ASSERT_EQ(table.find(key), known == model.end() ? nullptr : known->second) << "turn " << turn;
    if (random.below(500) == 0) {
      for (const auto& [of, flow] : model) {
        if (of >> 32 == job) table.remove(of);
      }
      std::erase_if(model, [job](const auto& entry) { return entry.first >> 32 == job; });
    } else if (random.below(4) == 0) {
      table.remove(key);
      model.erase(key);
    } else if (known == model.end()) {
      Flow& flow = flows.add();
      table.add(key, &flow);
      model[key] = &flow;
    }
  }
  ASSERT_GT(model.size(), 100u);
  for (const auto& [key, flow] : model) ASSERT_EQ(table.find(key), flow);
}

TEST(FlowTable, HasADifferentKeyForEachFieldOfAFrame) {
  std::set<std::uint64_t> keys;
  const auto expect_new = [&keys](const protocol::TransportHeader& transport,
                                  bcube::ServerId source) {
    EXPECT_TRUE(keys.insert(flow_key(transport, source)).second);
  };
  protocol::TransportHeader transport{};
  transport.job = 1;
  expect_new(transport, 0);
  expect_new(transport, bcube::kMaxServers - 1);
  const auto changed = [&](auto&& change) {
    protocol::TransportHeader other = transport;
    change(other);
    expect_new(other, 0);
  };
  changed([](auto& header) { header.job = 2; });
  changed([](auto& header) { header.lane = protocol::kMaxLanes - 1; });
  changed([](auto& header) { header.step = protocol::kMaxFlowSteps - 1; });
  changed([](auto& header) { header.thread = protocol::kMaxThreads - 1; });
  changed([](auto& header) {
    header.stage = header.stage == protocol::Stage::broadcast ? protocol::Stage::aggregation
                                                              : protocol::Stage::broadcast;
  });
}

TEST(FlowTable, FindsNothingWhenItIsEmptyAndAfterTheLastJobHasLeft) {
  LooseFlows flows;
  FlowTable table;
  SeededRandom random(1);
  const std::uint64_t key = draw_key(random, 7);
  EXPECT_EQ(table.find(key), nullptr);
  Flow& flow = flows.add();
  table.add(key, &flow);
  EXPECT_EQ(table.find(key), &flow);
  table.remove(draw_key(random, 8));
  EXPECT_EQ(table.find(key), &flow);
  table.remove(key);
  EXPECT_EQ(table.find(key), nullptr);
}

}  // namespace
}  // namespace gradcube::dataplane
