// The MAC itself: 64 bits of bytes and a block, by a key. mac.h says what of a frame it covers.
//
// A hash is encrypted, as the tag of AES-GCM-SIV is (RFC 8452):
//
//   AES-128_K2(GHASH_K1(first, second) xor block), the first eight bytes
//
// GHASH is that of GCM (NIST SP 800-38D), over both parts, each filled up to whole blocks of 16
// bytes with zeros. It has no block of lengths: the caller's block tells them apart. There is no
// nonce, so none can come again: what an attacker sees of two frames is that they differ.
//
// Intel's ipsec-mb does it with what an x86 CPU has, but for GHASH where there is VPCLMULQDQ and no
// AVX-512 (ghash_vpclmul.h: 2.4 times as fast); other CPUs by mac_portable.h. No state but the
// key; any thread; no allocation, but for the first key.
#ifndef GRADCUBE_PROTOCOL_KERNELS_MAC_KERNELS_H_
#define GRADCUBE_PROTOCOL_KERNELS_MAC_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gradcube::protocol {

using MacBlock = std::array<std::uint8_t, 16>;

class MacKernel {
 public:
  MacKernel(const MacBlock& hash_key, const MacBlock& cipher_key);

  std::uint64_t operator()(std::span<const std::uint8_t> first,
                           std::span<const std::uint8_t> second, const MacBlock& block) const;

 private:
  static constexpr std::size_t kHashTableBytes = 1280;  // ipsec-mb 1.3 needs 1,024, 1.5 needs 1,264
  static constexpr std::size_t kRoundKeyBytes = 16 * 11;

  alignas(64) std::array<std::uint8_t, kHashTableBytes> hash_table_{};
  alignas(16) std::array<std::uint8_t, kRoundKeyBytes> round_keys_{};
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_KERNELS_MAC_KERNELS_H_
