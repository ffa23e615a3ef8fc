// What a packet port counts beside the frames and bytes of every port.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_PORT_COUNTERS_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_PORT_COUNTERS_H_

#include <cstdint>

#include "dataplane/host/counter_table.h"

namespace gradcube::dataplane {

// Of one queue. `Number` is a RelaxedCounter where they are counted and a plain number where they
// are read.
template <typename Number>
struct PacketPortNumbers {
  Number rx_ring_full{};  // frames that the kernel dropped because no slot was free
  Number rx_too_long{};   // frames dropped because they did not fit into a slot or an mbuf
  Number rx_no_buffer{};  // times that frames stayed in the ring because no mbuf was free
  Number tx_refused{};    // frames dropped because they were too long or too short to be sent
  Number tx_postponed{};  // times that the kernel's queues were full; the frames stayed in the ring
  Number tx_failed{};     // times that it took none: the interface is down, or no more there

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    visit(CounterEntry{"rx_ring_full"}, objects.rx_ring_full...);
    visit(CounterEntry{"rx_too_long"}, objects.rx_too_long...);
    visit(CounterEntry{"rx_no_buffer"}, objects.rx_no_buffer...);
    visit(CounterEntry{"tx_refused"}, objects.tx_refused...);
    visit(CounterEntry{"tx_postponed"}, objects.tx_postponed...);
    visit(CounterEntry{"tx_failed"}, objects.tx_failed...);
  }
};
using PacketPortCounts = PacketPortNumbers<std::uint64_t>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_PORT_COUNTERS_H_
