#include "protocol/kernels/crc_kernels.h"

#include <isa-l/crc.h>

#include "protocol/kernels/crc_avx512.h"

namespace gradcube::protocol {

std::uint32_t crc_by_isal(std::uint32_t crc, const std::uint8_t* bytes,
                          std::size_t length) noexcept {
  // ISA-L's signature lacks a const; it only reads.
  const std::uint32_t updated =
      crc32_iscsi(const_cast<unsigned char*>(bytes), static_cast<int>(length), crc);
#if defined(__x86_64__)
  // ISA-L's AVX-512 form returns with the upper halves of the vector registers in use. This would
  // slow down every SSE instruction of the packet path.
  if (__builtin_cpu_supports("avx")) asm volatile("vzeroupper");
#endif
  return updated;
}

CrcFunction crc_by_avx512() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0 &&
      __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.2") != 0) {
    return extend_crc_avx512;
  }
#endif
  return nullptr;
}

CrcFunction select_crc() noexcept {
  const CrcFunction widest = crc_by_avx512();
  return widest != nullptr ? widest : crc_by_isal;
}

}  // namespace gradcube::protocol
