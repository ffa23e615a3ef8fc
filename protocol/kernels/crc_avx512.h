// The kernel of crc_avx512.cc, which is compiled for CPUs that have its instructions. Only
// crc_kernels.cc may use it: other code calls select_crc(). Exists in builds for x86_64 alone.
#ifndef GRADCUBE_PROTOCOL_KERNELS_CRC_AVX512_H_
#define GRADCUBE_PROTOCOL_KERNELS_CRC_AVX512_H_

#include <cstddef>
#include <cstdint>

namespace gradcube::protocol {

std::uint32_t extend_crc_avx512(std::uint32_t crc, const std::uint8_t* bytes,
                                std::size_t length) noexcept;

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_KERNELS_CRC_AVX512_H_
