// A port in front of another one, which outlives it: passes on what an engine sends, in the same
// lanes. What an engine receives, also by an express queue, is for who derives from it. One thread
// turns all engines.
#ifndef GRADCUBE_TESTS_SIMULATION_PASSING_PORT_H_
#define GRADCUBE_TESTS_SIMULATION_PASSING_PORT_H_

#include <cstdint>

#include "dataplane/fabric/port.h"

namespace gradcube::simulation {

class PassingPort : public dataplane::Port {
 public:
  std::uint16_t transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override {
    const auto counted = static_cast<std::uint16_t>(queue % queues());
    // What is sent is no longer the caller's to measure.
    const std::uint64_t before = port_.counts(counted).sent_bytes;
    const std::uint16_t sent = port_.transmit(queue, packets, count);
    count_sent(counted, sent, port_.counts(counted).sent_bytes - before);
    return sent;
  }
  std::uint16_t transmit_room(std::uint16_t queue) const override {
    return port_.transmit_room(queue);
  }
  std::uint16_t express_queue(std::uint16_t queue) const override {
    return port_.express_queue(queue);
  }

 protected:
  explicit PassingPort(dataplane::Port& port) : Port(port.queues(), port.mtu()), port_(port) {}

  std::uint16_t receive_there(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
    return port_.receive(queue, packets, count);
  }

 private:
  dataplane::Port& port_;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_PASSING_PORT_H_
