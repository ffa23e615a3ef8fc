// The end-to-end CRC32C of a frame, over everything that no relay changes. ISA-L computes it, by
// the widest instructions of this CPU.
//
// Covered: the Gradcube part of the headers up to the CRC field, with the current hop's three bits
// as 0; then the payload. Not covered: Ethernet, IPv4 and UDP. Every hop rewrites them, and the
// parser checks them by other means. A CRC field of 0 means that the sender computed no CRC; a CRC
// whose value is 0 is sent as 0xffffffff. A port whose medium can damage a frame checks each frame
// with crc_is_right(), which also refuses a frame without a CRC. Other ports do not check.
//
// `headers` always begins with the Ethernet header and has the length that write() or parse_frame()
// returned.
//
// No state; any thread. Nothing here throws.
#ifndef GRADCUBE_PROTOCOL_CRC_H_
#define GRADCUBE_PROTOCOL_CRC_H_

#include <cstdint>
#include <span>

namespace gradcube::protocol {

// Computes the CRC and stores it in the headers.
void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload);

// Whether the frame carries a CRC and it is the right one.
bool crc_is_right(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload);

// The reflected CRC32C (polynomial 0x1EDC6F41) of the bytes after `crc`, without inverting it
// before or after.
std::uint32_t extend_crc(std::uint32_t crc, std::span<const std::uint8_t> bytes);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_CRC_H_
