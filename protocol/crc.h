// The end-to-end CRC32C of a frame (ISA-L), over everything that no relay changes.
//
// Covered: the Gradcube part of the headers, the current hop's nibble taken as 0, up to the CRC
// field; then the payload. Not covered: Ethernet, IPv4 and UDP, which every hop writes anew and
// which the parser checks by other means. A CRC field of 0 says that no CRC was computed; a CRC
// that comes out as 0 is sent as 0xffffffff. Whether a frame without one is good enough is for the
// port that received it to say: a port whose medium cannot damage a frame asks nothing, every other
// asks crc_is_right(), which refuses it.
//
// `headers` is always a frame's headers from Ethernet on, exactly as long as write() or
// parse_frame() said.
#ifndef GRADCUBE_PROTOCOL_CRC_H_
#define GRADCUBE_PROTOCOL_CRC_H_

#include <cstdint>
#include <span>

namespace gradcube::protocol {

// Computes the CRC and stores it in the headers.
void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload);

// Whether the frame carries a CRC and it is the right one.
bool crc_is_right(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload);

// The same in steps, for a payload that lies in several places:
//   auto crc = begin_crc(headers); crc = extend_crc(crc, part)...; good = crc_matches(headers,
//   crc);
std::uint32_t begin_crc(std::span<const std::uint8_t> headers);
std::uint32_t extend_crc(std::uint32_t crc, std::span<const std::uint8_t> part);
bool crc_matches(std::span<const std::uint8_t> headers, std::uint32_t crc);
void store_crc(std::span<std::uint8_t> headers, std::uint32_t crc);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_CRC_H_
