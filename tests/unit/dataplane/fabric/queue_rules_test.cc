// Flow rules as a device is given them. No device at hand takes any, so this file replaces the
// calls of the whole program: where no test listens, they answer as those of a device without rules
// do.
#include "dataplane/fabric/nic/queue_rules.h"

#include <cerrno>
#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <rte_byteorder.h>
#include <rte_flow.h>

namespace gradcube::dataplane {

namespace {

// What a device has been told: by number of rule, the port that it matches and its queue.
struct FakeDevice {
  struct Rule {
    std::uint16_t source_port;
    std::uint16_t queue;
  };
  std::map<std::size_t, Rule> rules;
  std::size_t made = 0;
  std::size_t room = 1000;
};
FakeDevice* device = nullptr;

bool fits(const rte_flow_attr* attributes, const rte_flow_item* pattern,
          const rte_flow_action* actions) {
  if (attributes->ingress != 1 || pattern[0].type != RTE_FLOW_ITEM_TYPE_ETH ||
      pattern[1].type != RTE_FLOW_ITEM_TYPE_IPV4 || pattern[2].type != RTE_FLOW_ITEM_TYPE_UDP ||
      pattern[3].type != RTE_FLOW_ITEM_TYPE_END) {
    return false;
  }
  const auto& mask = *static_cast<const rte_flow_item_udp*>(pattern[2].mask);
  return mask.hdr.src_port == 0xffff && mask.hdr.dst_port == 0 &&
         actions[0].type == RTE_FLOW_ACTION_TYPE_QUEUE &&
         actions[1].type == RTE_FLOW_ACTION_TYPE_END;
}

class QueueRulesTest : public testing::Test {
 protected:
  QueueRulesTest() { device = &device_; }
  ~QueueRulesTest() override { device = nullptr; }

  FakeDevice device_;
};

TEST_F(QueueRulesTest, BringEachThreadToTheQueueOfItsEngineUntilTheyEnd) {
  {
    const QueueRules rules(0, 3);
    EXPECT_TRUE(rules.taken());
    std::map<std::uint16_t, std::uint16_t> queues;
    for (const auto& [number, rule] : device_.rules) queues[rule.source_port] = rule.queue;
    ASSERT_EQ(queues.size(), 64u);
    for (unsigned thread = 0; thread < 64; ++thread) {
      EXPECT_EQ(queues.at(static_cast<std::uint16_t>(49152 + thread)), thread % 3);
    }
  }
  EXPECT_TRUE(device_.rules.empty());
}

TEST_F(QueueRulesTest, AreAllOrNone) {
  device_.room = 10;
  const QueueRules rules(0, 2);
  EXPECT_FALSE(rules.taken());
  EXPECT_EQ(device_.made, 10u);
  EXPECT_TRUE(device_.rules.empty());
}

}  // namespace

}  // namespace gradcube::dataplane

// Found before DPDK's by the program's calls.
extern "C" {

int rte_flow_validate(uint16_t, const rte_flow_attr* attributes, const rte_flow_item* pattern,
                      const rte_flow_action* actions, rte_flow_error*) {
  const gradcube::dataplane::FakeDevice* fake = gradcube::dataplane::device;
  if (fake == nullptr) return -ENOSYS;
  if (!gradcube::dataplane::fits(attributes, pattern, actions)) return -EINVAL;
  return fake->rules.size() < fake->room ? 0 : -ENOSPC;
}

rte_flow* rte_flow_create(uint16_t, const rte_flow_attr*, const rte_flow_item* pattern,
                          const rte_flow_action* actions, rte_flow_error*) {
  gradcube::dataplane::FakeDevice* fake = gradcube::dataplane::device;
  if (fake == nullptr) return nullptr;
  const auto& udp = *static_cast<const rte_flow_item_udp*>(pattern[2].spec);
  const auto& queue = *static_cast<const rte_flow_action_queue*>(actions[0].conf);
  fake->rules[++fake->made] = {rte_be_to_cpu_16(udp.hdr.src_port), queue.index};
  return reinterpret_cast<rte_flow*>(fake->made);
}

int rte_flow_destroy(uint16_t, rte_flow* rule, rte_flow_error*) {
  gradcube::dataplane::FakeDevice* fake = gradcube::dataplane::device;
  if (fake == nullptr) return -ENOSYS;
  return fake->rules.erase(reinterpret_cast<std::size_t>(rule)) == 1 ? 0 : -EINVAL;
}

}  // extern "C"
