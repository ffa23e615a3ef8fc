// What a port on an Ethernet device of DPDK's counts beside the frames and bytes of every port.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_PORT_COUNTERS_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_PORT_COUNTERS_H_

#include <cstdint>

#include "dataplane/host/counter_table.h"

namespace gradcube::dataplane {

// Of one queue. `Number` is a RelaxedCounter where they are counted and a plain number where they
// are read.
template <typename Number>
struct EthdevPortNumbers {
  Number rx_too_long{};   // frames dropped because they are longer than the MTU allows
  Number rx_no_buffer{};  // frames dropped because no packet was free to put them together in
  Number tx_refused{};    // frames dropped because they were too long or too short to be sent
  Number tx_no_buffer{};  // frames dropped because no packet was free to copy them into
  Number tx_postponed{};  // times that the device did not take all frames; they wait
  Number tx_dropped{};    // frames dropped because the device has no link, or took none for long

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    visit(CounterEntry{"rx_too_long"}, objects.rx_too_long...);
    visit(CounterEntry{"rx_no_buffer"}, objects.rx_no_buffer...);
    visit(CounterEntry{"tx_refused"}, objects.tx_refused...);
    visit(CounterEntry{"tx_no_buffer"}, objects.tx_no_buffer...);
    visit(CounterEntry{"tx_postponed"}, objects.tx_postponed...);
    visit(CounterEntry{"tx_dropped"}, objects.tx_dropped...);
  }
};
using EthdevPortCounts = EthdevPortNumbers<std::uint64_t>;

// What a NIC itself has dropped, as its driver counts it.
struct NicDropCounts {
  std::uint64_t nic_rx_missed = 0;     // frames dropped because the queue of received ones was full
  std::uint64_t nic_rx_errors = 0;     // frames that came in damaged, or too long or too short
  std::uint64_t nic_rx_no_buffer = 0;  // times that the driver had no packet to receive into
  std::uint64_t nic_tx_errors = 0;     // frames that could not be sent

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    visit(CounterEntry{"nic_rx_missed"}, objects.nic_rx_missed...);
    visit(CounterEntry{"nic_rx_errors"}, objects.nic_rx_errors...);
    visit(CounterEntry{"nic_rx_no_buffer"}, objects.nic_rx_no_buffer...);
    visit(CounterEntry{"nic_tx_errors"}, objects.nic_tx_errors...);
  }
  bool operator==(const NicDropCounts&) const = default;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_PORT_COUNTERS_H_
