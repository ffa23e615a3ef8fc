// What a port of datagrams counts beside the frames and bytes of every port.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PORT_COUNTERS_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PORT_COUNTERS_H_

#include <cstdint>

#include "dataplane/host/counter_table.h"

namespace gradcube::dataplane {

// Of one queue. `Number` is a RelaxedCounter where they are counted and a plain number where they
// are read.
template <typename Number>
struct UdpPortNumbers {
  Number
      rx_buffer_full{};   // datagrams that the kernel dropped because the socket was full of others
  Number rx_strangers{};  // datagrams dropped because their sender is no neighbour of this port
  Number rx_refused{};    // datagrams of neighbours dropped because they are no fragment of a frame
  Number rx_unfinished{};  // frames dropped because one of their fragments did not come
  Number rx_no_buffer{};   // times that datagrams stayed in the socket because no mbuf was free
  Number tx_refused{};     // frames dropped because they were too long or short, or for nobody here
  Number tx_too_long{};    // frames dropped because the way to the neighbour carries shorter ones
  Number tx_failed{};     // frames dropped because the kernel did not send them: no way, a firewall
  Number tx_postponed{};  // times that the kernel's buffers were full; the frames stayed

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    visit(CounterEntry{"rx_buffer_full"}, objects.rx_buffer_full...);
    visit(CounterEntry{"rx_strangers"}, objects.rx_strangers...);
    visit(CounterEntry{"rx_refused"}, objects.rx_refused...);
    visit(CounterEntry{"rx_unfinished"}, objects.rx_unfinished...);
    visit(CounterEntry{"rx_no_buffer"}, objects.rx_no_buffer...);
    visit(CounterEntry{"tx_refused"}, objects.tx_refused...);
    visit(CounterEntry{"tx_too_long"}, objects.tx_too_long...);
    visit(CounterEntry{"tx_failed"}, objects.tx_failed...);
    visit(CounterEntry{"tx_postponed"}, objects.tx_postponed...);
  }
};
using UdpPortCounts = UdpPortNumbers<std::uint64_t>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PORT_COUNTERS_H_
