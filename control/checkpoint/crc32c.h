// The CRC32C of bytes, as iSCSI has it (RFC 3720, B.4): begin with kCrc32cBegin, extend by bytes in
// any number of parts, end with crc32c_end().
//
// protocol/ has faster ones for frames, by ISA-L. This one needs no third party, so that the
// trainer's library can have it, and is faster than disks. All functions here are pure. Any thread
// may call them.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_CRC32C_H_
#define GRADCUBE_CONTROL_CHECKPOINT_CRC32C_H_

#include <cstdint>
#include <span>

namespace gradcube::control {

inline constexpr std::uint32_t kCrc32cBegin = 0xffffffff;

// By the processor's instruction (SSE4.2) where it has one, else by the table.
std::uint32_t extend_crc32c(std::uint32_t crc, std::span<const std::uint8_t> bytes);
// The same on every processor.
std::uint32_t extend_crc32c_by_table(std::uint32_t crc, std::span<const std::uint8_t> bytes);

constexpr std::uint32_t crc32c_end(std::uint32_t crc) { return ~crc; }

inline std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  return crc32c_end(extend_crc32c(kCrc32cBegin, bytes));
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_CRC32C_H_
