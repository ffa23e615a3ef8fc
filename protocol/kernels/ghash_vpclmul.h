// GHASH for CPUs that multiply two pairs of 64-bit polynomials at once (VPCLMULQDQ in 256-bit
// vectors). Only mac_kernels.cc may use it. Exists in builds for x86_64 alone.
//
// The table of a key is made once; any thread may use it then.
#ifndef GRADCUBE_PROTOCOL_KERNELS_GHASH_VPCLMUL_H_
#define GRADCUBE_PROTOCOL_KERNELS_GHASH_VPCLMUL_H_

#include <cstddef>
#include <cstdint>

namespace gradcube::protocol {

// Bytes of a key's table, which is aligned to 64.
inline constexpr std::size_t kGhashTableBytes = 512;

// `key`: 16 bytes.
void expand_ghash_key(const std::uint8_t* key, std::uint8_t* table) noexcept;

// Goes on from the 16 bytes of `hash`; the last block is filled up with zeros.
void extend_ghash(const std::uint8_t* table, const std::uint8_t* bytes, std::size_t length,
                  std::uint8_t* hash) noexcept;

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_KERNELS_GHASH_VPCLMUL_H_
