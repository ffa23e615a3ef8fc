// What an emulated switch counts, for each of its ports.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_SWITCH_COUNTERS_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_SWITCH_COUNTERS_H_

#include <cstdint>

#include "dataplane/host/counter_table.h"
#include "dataplane/host/relaxed_counter.h"

namespace gradcube::dataplane {

// What happens at one port of a switch. Everything but unknown_mac is counted at the port through
// which the frame leaves the switch. `Number` is a RelaxedCounter where frames are counted and a
// plain number where counts are read.
template <typename Number>
struct SwitchPortNumbers {
  Number forwarded{};  // frames given to the server
  Number bytes{};      // their bytes
  Number dropped_queue{};
  Number dropped_loss{};
  Number dropped_down{};  // the link of the input or output port was down
  Number dropped_long{};  // longer than the link that they came over carries
  Number rx_missed{};     // the server did not empty its receive ring in time
  Number unknown_mac{};   // came in here for an address that nobody has, or without one
  Number marked{};        // ECN
  Number duplicated{};
  Number reordered{};
  Number corrupted{};
  Number copy_failed{};  // passed unharmed, because the pool of clones was empty
  Number resteered{};    // of another shard's queue; delivered on the queue it was sent on
  Number queue_peak_bytes{};

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    visit(CounterEntry{"forwarded"}, objects.forwarded...);
    visit(CounterEntry{"bytes"}, objects.bytes...);
    visit(CounterEntry{"dropped_queue"}, objects.dropped_queue...);
    visit(CounterEntry{"dropped_loss"}, objects.dropped_loss...);
    visit(CounterEntry{"dropped_down"}, objects.dropped_down...);
    visit(CounterEntry{"dropped_long"}, objects.dropped_long...);
    visit(CounterEntry{"rx_missed"}, objects.rx_missed...);
    visit(CounterEntry{"unknown_mac"}, objects.unknown_mac...);
    visit(CounterEntry{"marked"}, objects.marked...);
    visit(CounterEntry{"duplicated"}, objects.duplicated...);
    visit(CounterEntry{"reordered"}, objects.reordered...);
    visit(CounterEntry{"corrupted"}, objects.corrupted...);
    visit(CounterEntry{"copy_failed"}, objects.copy_failed...);
    visit(CounterEntry{"resteered"}, objects.resteered...);
    visit(CounterEntry{"queue_peak_bytes", Merge::maximum}, objects.queue_peak_bytes...);
  }
};

// What one shard counts at one port: written by the shard's thread, read by any. A cache line of
// its own, so that two ports' readers and writers do not disturb each other.
struct alignas(64) SwitchPortCounters : SwitchPortNumbers<RelaxedCounter> {};

// The numbers read from them, of one port or summed over many.
using SwitchPortCounts = SwitchPortNumbers<std::uint64_t>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_SWITCH_COUNTERS_H_
