#include "dataplane/fabric/nic/queue_rules.h"

#include <array>
#include <rte_byteorder.h>

#include "protocol/wire.h"

namespace gradcube::dataplane {

namespace {

// Threads of plans have numbers below this; those of hubs and mail use the same ports again.
constexpr unsigned kPorts = protocol::kFirstHubThread;

}  // namespace

QueueRules::QueueRules(std::uint16_t device, std::uint16_t queues) : device_(device) {
  for (unsigned thread = 0; thread < kPorts; ++thread) {
    if (add(static_cast<std::uint16_t>(protocol::kFirstSourcePort + thread),
            static_cast<std::uint16_t>(thread % queues))) {
      continue;
    }
    remove_all();
    return;
  }
}

QueueRules::~QueueRules() { remove_all(); }

bool QueueRules::add(std::uint16_t source_port, std::uint16_t queue) {
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rte_flow_item_udp port{};
  port.hdr.src_port = rte_cpu_to_be_16(source_port);
  rte_flow_item_udp mask{};
  mask.hdr.src_port = RTE_BE16(0xffff);
  std::array<rte_flow_item, 4> pattern{};
  pattern[0].type = RTE_FLOW_ITEM_TYPE_ETH;
  pattern[1].type = RTE_FLOW_ITEM_TYPE_IPV4;
  pattern[2].type = RTE_FLOW_ITEM_TYPE_UDP;
  pattern[2].spec = &port;
  pattern[2].mask = &mask;
  pattern[3].type = RTE_FLOW_ITEM_TYPE_END;
  const rte_flow_action_queue to{queue};
  std::array<rte_flow_action, 2> actions{};
  actions[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
  actions[0].conf = &to;
  actions[1].type = RTE_FLOW_ACTION_TYPE_END;
  rte_flow_error why{};
  if (rte_flow_validate(device_, &attributes, pattern.data(), actions.data(), &why) != 0) {
    return false;
  }
  rte_flow* rule = rte_flow_create(device_, &attributes, pattern.data(), actions.data(), &why);
  if (rule != nullptr) rules_.push_back(rule);
  return rule != nullptr;
}

void QueueRules::remove_all() {
  rte_flow_error why{};
  for (rte_flow* rule : rules_) rte_flow_destroy(device_, rule, &why);
  rules_.clear();
}

}  // namespace gradcube::dataplane
