// What a server's ports have left in each direction: their rates, less what they have carried
// lately. Path probes tell it to the sources of flows (engine/engine_paths.cc).
//
// An average that follows what a port carries within kAverage. It counts the bytes of all engines'
// queues, with preamble, FCS and gap. The owner calls sample() as often as it likes; while it
// sleeps nothing is carried, so the next sample has what went before.
//
// Owned and used by one engine. Allocates when it is made.
#ifndef GRADCUBE_DATAPLANE_LINKS_PORT_LOADS_H_
#define GRADCUBE_DATAPLANE_LINKS_PORT_LOADS_H_

#include <cstdint>
#include <vector>

#include "dataplane/fabric/port.h"
#include "protocol/time.h"

namespace gradcube::dataplane {

class PortLoads {
 public:
  static constexpr protocol::Nanoseconds kAverage = 50 * protocol::kMillisecond;
  static constexpr protocol::Nanoseconds kShortest = 5 * protocol::kMillisecond;

  // By number. bits_per_second: 0 if the port is as fast as it goes.
  void add(const Port& port, std::uint64_t bits_per_second) {
    ports_.push_back({&port, bits_per_second, {bits_sent(port), 0}, {bits_received(port), 0}});
  }

  void sample(protocol::Nanoseconds now);

  // UINT64_MAX of a port without a rate.
  std::uint64_t left_out(unsigned port) const { return left(ports_[port], ports_[port].out); }
  std::uint64_t left_in(unsigned port) const { return left(ports_[port], ports_[port].in); }
  std::uint64_t rate(unsigned port) const { return ports_[port].bits_per_second; }

 private:
  struct Direction {
    std::uint64_t bits = 0;  // in all
    double average = 0;      // bits per second
  };
  struct Load {
    const Port* port;
    std::uint64_t bits_per_second;
    Direction out;
    Direction in;
  };

  static std::uint64_t bits_sent(const Port& port);
  static std::uint64_t bits_received(const Port& port);
  static std::uint64_t left(const Load& load, const Direction& direction);

  std::vector<Load> ports_;
  protocol::Nanoseconds sampled_at_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_LINKS_PORT_LOADS_H_
