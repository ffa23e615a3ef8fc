// The end-to-end CRC32C of a frame (crc_kernels.h), over everything that no relay changes.
//
// Covered: the Gradcube part of the headers up to the CRC field, with the current hop's three bits
// as 0; then the payload. Not covered: Ethernet, IPv4 and UDP. Every hop rewrites them, and the
// parser checks them by other means. A CRC field of 0 means that the sender computed no CRC; a CRC
// whose value is 0 is sent as 0xffffffff. A port whose medium can damage a frame checks each frame
// with crc_is_right(), which also refuses a frame without a CRC. Other ports do not check.
//
// `headers` always begins with the Ethernet header and has the length that write() or parse_frame()
// returned.
#ifndef GRADCUBE_PROTOCOL_CRC_H_
#define GRADCUBE_PROTOCOL_CRC_H_

#include <cstdint>
#include <span>

namespace gradcube::protocol {

// Computes the CRC and stores it in the headers.
void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload);

// Whether the frame carries a CRC and it is the right one.
bool crc_is_right(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload);

// The same in steps, for a payload in several parts:
//   auto crc = begin_crc(headers);
//   crc = extend_crc(crc, part);  // for each part
//   good = crc_matches(headers, crc);
std::uint32_t begin_crc(std::span<const std::uint8_t> headers);
std::uint32_t extend_crc(std::uint32_t crc, std::span<const std::uint8_t> part);
bool crc_matches(std::span<const std::uint8_t> headers, std::uint32_t crc);
void store_crc(std::span<std::uint8_t> headers, std::uint32_t crc);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_CRC_H_
