// What an engine counts of each neighbour: how the exchange with it goes, over all jobs.
//
// Written by the engine's thread; any thread may read. The three numbers of one reading need not be
// of one moment.
#ifndef GRADCUBE_DATAPLANE_LINKS_NEIGHBOUR_COUNTERS_H_
#define GRADCUBE_DATAPLANE_LINKS_NEIGHBOUR_COUNTERS_H_

#include <cstdint>

#include "dataplane/host/relaxed_counter.h"

namespace gradcube::dataplane {

struct NeighbourNumbers {
  // Frames from it, of a job's flow and present epoch, by any route, with a segment that had not
  // come before or an acknowledgement of one that had not been acknowledged: so it lives.
  std::uint64_t received = 0;
  std::uint64_t resent = 0;        // segments sent to it again
  std::uint64_t acknowledged = 0;  // segments that it has acknowledged

  void operator+=(const NeighbourNumbers& other) {
    received += other.received;
    resent += other.resent;
    acknowledged += other.acknowledged;
  }
};

struct NeighbourCounters {
  RelaxedCounter received;
  RelaxedCounter direct;  // of those received, frames that came over the link itself
  RelaxedCounter resent;
  RelaxedCounter acknowledged;

  NeighbourNumbers read() const { return {received.value(), resent.value(), acknowledged.value()}; }
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_NEIGHBOUR_COUNTERS_H_
