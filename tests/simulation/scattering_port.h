// A port that brings frames to any of its server's engines, as a NIC may that knows nothing of
// threads: whoever looks at a queue gets what lies in another one. Who looks at which is drawn anew
// from time to time, so every queue is emptied by somebody.
#ifndef GRADCUBE_TESTS_SIMULATION_SCATTERING_PORT_H_
#define GRADCUBE_TESTS_SIMULATION_SCATTERING_PORT_H_

#include <cstdint>

#include "dataplane/fabric/emulated/random.h"
#include "tests/simulation/passing_port.h"

namespace gradcube::simulation {

class ScatteringPort final : public PassingPort {
 public:
  ScatteringPort(dataplane::Port& port, std::uint64_t seed) : PassingPort(port), random_(seed) {}

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override {
    if (queue == 0) shift_ = random_.below(queues());
    const auto other = static_cast<std::uint16_t>((queue + shift_) % queues());
    const std::uint16_t received = receive_there(other, packets, count);
    count_received(queue % queues(), received, total_bytes(packets, received));
    return received;
  }

 private:
  dataplane::SeededRandom random_;
  std::uint64_t shift_ = 0;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_SCATTERING_PORT_H_
