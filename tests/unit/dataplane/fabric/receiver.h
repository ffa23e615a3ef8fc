// What a poller of a test polls: a port.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_RECEIVER_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_RECEIVER_H_

#include <atomic>
#include <rte_mbuf.h>

#include "dataplane/fabric/port.h"
#include "dataplane/host/pollable.h"

namespace gradcube::dataplane {

// Receives, and counts what it received.
class Receiver final : public Pollable {
 public:
  explicit Receiver(Port& port) : port_(port) {}
  unsigned poll(Nanoseconds) override {
    rte_mbuf* packets[8];
    const unsigned count = port_.receive(0, packets, 8);
    rte_pktmbuf_free_bulk(packets, count);
    received += count;
    return count;
  }
  Nanoseconds next_event() const override { return kNever; }

  std::atomic<unsigned> received{0};

 private:
  Port& port_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_RECEIVER_H_
