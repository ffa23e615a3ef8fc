// A port that brings frames to any of its server's engines, as a NIC may that knows nothing of
// threads: whoever looks at a queue gets what lies in another one. Who looks at which is drawn anew
// from time to time, so every queue is emptied by somebody.
//
// Passes all calls on to a port that outlives it. One thread turns all engines.
#ifndef GRADCUBE_TESTS_SIMULATION_SCATTERING_PORT_H_
#define GRADCUBE_TESTS_SIMULATION_SCATTERING_PORT_H_

#include <cstdint>

#include "dataplane/fabric/emulated/random.h"
#include "dataplane/fabric/port.h"

namespace gradcube::simulation {

class ScatteringPort final : public dataplane::Port {
 public:
  ScatteringPort(dataplane::Port& port, std::uint64_t seed)
      : Port(port.queues(), port.mtu()), port_(port), random_(seed) {}

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override {
    if (queue == 0) shift_ = random_.below(queues());
    const auto other = static_cast<std::uint16_t>((queue + shift_) % queues());
    const std::uint16_t received = port_.receive(other, packets, count);
    count_received(queue, received, total_bytes(packets, received));
    return received;
  }
  std::uint16_t transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override {
    // What is sent is no longer the caller's to measure.
    const std::uint64_t before = port_.counts(queue).sent_bytes;
    const std::uint16_t sent = port_.transmit(queue, packets, count);
    count_sent(queue, sent, port_.counts(queue).sent_bytes - before);
    return sent;
  }
  std::uint16_t transmit_room(std::uint16_t queue) const override {
    return port_.transmit_room(queue);
  }

 private:
  dataplane::Port& port_;
  dataplane::SeededRandom random_;
  std::uint64_t shift_ = 0;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_SCATTERING_PORT_H_
