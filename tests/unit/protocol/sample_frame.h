// A frame to take apart: every field has a value of its own.
#ifndef GRADCUBE_TESTS_UNIT_PROTOCOL_SAMPLE_FRAME_H_
#define GRADCUBE_TESTS_UNIT_PROTOCOL_SAMPLE_FRAME_H_

#include <cstdint>
#include <vector>

#include "protocol/crc.h"
#include "protocol/wire.h"

namespace gradcube::protocol {

struct SampleFrame {
  LinkAddresses link{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 0x0a000001, 0x0a000102};
  RoutingHeader routing;
  TransportHeader transport;
  SegmentHeader segment;
  std::vector<std::uint8_t> payload;

  explicit SampleFrame(std::size_t payload_bytes = 64, unsigned hops = 1) {
    routing.source = 0x0102;
    routing.destination = 0x0304;
    routing.hop_count = static_cast<std::uint8_t>(hops);
    for (unsigned hop = 0; hop < hops; ++hop) {
      routing.hops[hop] =
          Hop{static_cast<std::uint8_t>(hop + 1), static_cast<std::uint8_t>(0x20 + hop)};
    }
    transport = {.job = 0xa1a2a3a4,
                 .epoch = 0xb1b2,
                 .stage = Stage::broadcast,
                 .thread = 5,
                 .lane = 6,
                 .step = 19,
                 .backlog = 17,
                 .held = 9,
                 .credit = 0x77,
                 .sent_again = true,
                 .sequence = 0xc1c2c3c4,
                 .acknowledged = 0xd1d2d3d4,
                 .selective = 0xe1e2e3e4e5e6e7e8};
    segment = {{.collective = 0x11121314,
                .count = 0x41424344,
                .root = 0x3132,
                .kind = 0x51,
                .type_and_operation = 0x21},
               static_cast<std::uint16_t>(payload_bytes)};
    for (std::size_t at = 0; at < payload_bytes; ++at) {
      payload.push_back(static_cast<std::uint8_t>(at * 7 + 1));
    }
  }

  // The whole frame, headers and payload, with its CRC.
  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> frame(kMaxHeaderBytes);
    frame.resize(encode_frame(frame, link, routing, transport, &segment));
    seal(frame, payload);
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
  }

  std::vector<std::uint8_t> acknowledgement_bytes() const {
    std::vector<std::uint8_t> frame(kMaxHeaderBytes);
    frame.resize(encode_frame(frame, link, routing, transport, nullptr));
    seal(frame, {});
    return frame;
  }
};

// What a receiver whose medium can damage frames makes of one.
inline FrameError receive(const std::vector<std::uint8_t>& frame) {
  ParsedFrame parsed;
  const FrameError error = parse_frame(frame, frame.size(), parsed);
  if (error != FrameError::none) return error;
  const std::span<const std::uint8_t> whole(frame);
  return crc_is_right(whole.first(parsed.header_bytes),
                      whole.subspan(parsed.header_bytes, parsed.payload_bytes))
             ? FrameError::none
             : FrameError::bad_crc;
}

}  // namespace gradcube::protocol

#endif  // GRADCUBE_TESTS_UNIT_PROTOCOL_SAMPLE_FRAME_H_
