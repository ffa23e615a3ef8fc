// How a port configures, starts and ends its device.

#include <algorithm>
#include <fmt/format.h>
#include <rte_ethdev.h>

#include "control/base/errors.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/host/interrupt_thread.h"

namespace gradcube::dataplane {

std::string_view name(DeviceSteering steering) {
  switch (steering) {
    case DeviceSteering::rss:
      return "rss";
    case DeviceSteering::rules:
      return "rules";
    default:
      return "none";
  }
}

void EthdevPort::end_device() {
  const auto end = [this] {
    rules_.reset();
    rte_eth_dev_stop(device_);
    rte_eth_dev_close(device_);
  };
  if (ends_on_interrupt_thread_) {
    run_on_interrupt_thread(end);
  } else {
    end();
  }
}

void EthdevPort::start(const EthdevPortOptions& options) {
  // Of the drivers that have no receive interrupts, some say so when they are configured, others at
  // the start.
  const auto start_without_interrupts = [this, &options] {
    EthdevPortOptions without = options;
    without.receive_interrupts = false;
    start(without);
  };
  rte_eth_dev_info facts{};
  int failed = rte_eth_dev_info_get(device_, &facts);
  if (failed == 0) failed = configure(options, facts);
  if (failed != 0 && options.receive_interrupts) return start_without_interrupts();
  if (failed != 0) {
    throw control::SetupError(fmt::format("{} cannot have {} queues with an MTU of {}: {}", name_,
                                          queues(), options.mtu, rte_strerror(-failed)));
  }
  const bool chains = (facts.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  const bool copies = std::all_of(options.pools.begin(), options.pools.end(),
                                  [](const EthdevQueuePools& one) { return one.sent != nullptr; });
  if (!chains && !copies) {
    throw control::SetupError(fmt::format(
        "{} sends no frames that lie in several packets: give it pools for copies", name_));
  }
  set_up_queues(options);
  failed = rte_eth_dev_start(device_);
  if (failed != 0 && options.receive_interrupts) return start_without_interrupts();
  if (failed != 0) {
    throw control::SetupError(fmt::format("{} does not start: {}", name_, rte_strerror(-failed)));
  }
  if (receive_queues_ > 1) {
    rules_.emplace(device_, receive_queues_);
    if (rules_->taken()) steering_ = DeviceSteering::rules;
  }
  if (options.receive_interrupts) find_wake_descriptors();
}

// Returns what DPDK does: 0, or a negative error.
int EthdevPort::configure(const EthdevPortOptions& options, const rte_eth_dev_info& facts) {
  if (facts.max_tx_queues < queues()) {
    throw control::UsageError(
        fmt::format("lcores: there are {}, each with a queue of its own, and {} has {} to send "
                    "from: expected at most {}",
                    queues(), name_, facts.max_tx_queues, facts.max_tx_queues));
  }
  receive_queues_ = facts.max_rx_queues < queues() ? std::uint16_t{1} : queues();
  rte_eth_conf configuration{};
  configuration.intr_conf.rxq = options.receive_interrupts ? 1 : 0;
  configuration.rxmode.mtu = options.device_mtu == 0 ? options.mtu : options.device_mtu;
  configuration.txmode.offloads = facts.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  configuration.rxmode.offloads = facts.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
  const std::uint64_t hashes = facts.flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_UDP;
  steering_ = receive_queues_ > 1 && hashes != 0 ? DeviceSteering::rss : DeviceSteering::none;
  if (steering_ == DeviceSteering::rss) {
    configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    configuration.rx_adv_conf.rss_conf.rss_hf = hashes;
  }
  return rte_eth_dev_configure(device_, receive_queues_, queues(), &configuration);
}

void EthdevPort::find_wake_descriptors() {
  for (std::uint16_t queue = 0; queue < receive_queues_; ++queue) {
    const int descriptor = rte_eth_dev_rx_intr_ctl_q_get_fd(device_, queue);
    if (descriptor < 0 || rte_eth_dev_rx_intr_enable(device_, queue) != 0) continue;
    rte_eth_dev_rx_intr_disable(device_, queue);
    queues_[queue].wake_descriptor = descriptor;
  }
}

void EthdevPort::set_up_queues(const EthdevPortOptions& options) {
  const int node = rte_eth_dev_socket_id(device_);
  const auto socket = static_cast<unsigned>(node < 0 ? SOCKET_ID_ANY : node);
  for (std::uint16_t queue = 0; queue < queues(); ++queue) {
    const EthdevQueuePools& pools = options.pools[queue];
    rte_mempool* into = (pools.device == nullptr ? pools.received : pools.device)->get();
    int failed = 0;
    if (queue < receive_queues_) {
      failed = rte_eth_rx_queue_setup(device_, queue, options.receive_depth, socket, nullptr, into);
    }
    if (failed == 0) {
      failed = rte_eth_tx_queue_setup(device_, queue, options.transmit_depth, socket, nullptr);
    }
    if (failed != 0) {
      throw control::SetupError(fmt::format(
          "{} cannot have a queue {} of {} packets to receive and {} to send: {}", name_, queue,
          options.receive_depth, options.transmit_depth, rte_strerror(-failed)));
    }
  }
}

}  // namespace gradcube::dataplane
