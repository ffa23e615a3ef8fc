// Frames that no engine has sent.
#ifndef GRADCUBE_TESTS_SIMULATION_FORGERY_H_
#define GRADCUBE_TESTS_SIMULATION_FORGERY_H_

#include <cstdint>
#include <vector>

#include "protocol/crc.h"
#include "protocol/wire.h"

namespace gradcube::simulation {

// What a frame to server 0 from its neighbour 1 at level 0 says; a test changes one thing.
struct Forgery {
  protocol::RoutingHeader routing;
  protocol::TransportHeader transport;
  protocol::SegmentHeader segment;
  bool is_segment = false;
  std::vector<std::uint8_t> payload;

  std::vector<std::uint8_t> bytes(bool sealed) const {
    const protocol::LinkAddresses link{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 1, 2};
    std::vector<std::uint8_t> frame(protocol::kMaxHeaderBytes);
    frame.resize(
        protocol::encode_frame(frame, link, routing, transport, is_segment ? &segment : nullptr));
    if (sealed) protocol::seal(frame, payload);
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
  }
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_FORGERY_H_
