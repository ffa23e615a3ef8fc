// The CRC32C itself: the remainder of bytes, by the widest instructions of this CPU. crc.h says
// what of a frame it covers.
//
// All functions return the same bits: the reflected CRC32C (polynomial 0x1EDC6F41) of `length`
// bytes after `crc`, without inverting it before or after. They read nothing outside the bytes and
// take any alignment and any length. No state; any thread.
#ifndef GRADCUBE_PROTOCOL_KERNELS_CRC_KERNELS_H_
#define GRADCUBE_PROTOCOL_KERNELS_CRC_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace gradcube::protocol {

using CrcFunction = std::uint32_t (*)(std::uint32_t crc, const std::uint8_t* bytes,
                                      std::size_t length) noexcept;

// ISA-L's choice for this CPU. Always available.
std::uint32_t crc_by_isal(std::uint32_t crc, const std::uint8_t* bytes,
                          std::size_t length) noexcept;

// AVX-512 with carry-less multiplication of four pairs at once. Null if this CPU, its operating
// system or this build does not support it.
CrcFunction crc_by_avx512() noexcept;

// The fastest one of this machine.
CrcFunction select_crc() noexcept;

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_KERNELS_CRC_KERNELS_H_
