// What the engine does with the number of a segment, in one call.
#ifndef GRADCUBE_TESTS_UNIT_PROTOCOL_ARRIVE_H_
#define GRADCUBE_TESTS_UNIT_PROTOCOL_ARRIVE_H_

#include <cstdint>

#include "protocol/receive_window.h"

namespace gradcube::protocol {

inline Arrival arrive(ReceiveWindow& window, std::uint64_t sequence, Nanoseconds now = 0) {
  const std::uint64_t expanded = window.expand(static_cast<std::uint32_t>(sequence));
  const Arrival arrival = window.look(expanded);
  if (arrival == Arrival::fresh) {
    window.record(expanded, now);
  } else {
    window.acknowledge_at_once();
  }
  return arrival;
}

}  // namespace gradcube::protocol

#endif  // GRADCUBE_TESTS_UNIT_PROTOCOL_ARRIVE_H_
